"""What a trained orchestrator is compared with: fixed plans, draws, routers and votes, none of which is trained."""
