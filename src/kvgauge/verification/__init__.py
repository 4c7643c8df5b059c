"""An engine's start-up log against what is predicted: its lines, what they say, and what explains them."""
