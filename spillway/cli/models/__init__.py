"""Commands that predict: no engine runs unless they are asked to check."""
