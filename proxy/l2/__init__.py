"""Who answers for a load-balancer address: values and decisions only; packets and sockets are the daemon's."""
