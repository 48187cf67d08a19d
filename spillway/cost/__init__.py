"""What a data set at a throughput costs: the formula, measured points, the map of the cheapest system."""
