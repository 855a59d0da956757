"""Whatever moves the VIP between the LAN's nodes, behind one Protocol."""
