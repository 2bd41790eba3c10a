"""The commands that serve: a pool as one model, deployments, plans that wait, and a coding agent over MCP."""
