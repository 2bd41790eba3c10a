"""The success predictor's training: what agents and tools are asked, pools drawn anew, log loss on outcomes."""
