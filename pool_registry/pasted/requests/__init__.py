"""Requests over HTTP as people keep them, curl lines and collections of Postman: each becomes a worker or an agent."""
