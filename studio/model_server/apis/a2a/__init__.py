"""The orchestrator as an agent that speaks A2A (https://a2a-protocol.org) over JSON-RPC.

The few lines are our own: the protocol's package would bring five others into every installation. The tests speak with
that package (tests/neighbours/test_a2a.py).
"""
