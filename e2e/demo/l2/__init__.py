"""`make demo-l2`: pools, Services, and announcers on a LAN whose nodes fail, with every promise checked by a client."""
