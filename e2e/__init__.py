"""Stories told to the real thing: a real API server, real daemons, real packets."""
