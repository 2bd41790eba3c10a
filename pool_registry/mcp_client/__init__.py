"""The client side of the Model Context Protocol, through its official SDK: one shared session per server."""
