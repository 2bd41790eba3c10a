"""What agents are asked, and every text that the success predictor is trained on."""
