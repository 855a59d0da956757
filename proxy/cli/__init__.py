"""The command line: one file a command, each only reads its flags, calls one function, and shows what came back.

Exit codes: 0 done; 1 this host or cluster can't do it (privilege, kernel, no such Service); 2 a flag or file is wrong.
"""
