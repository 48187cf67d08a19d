"""Parameters from measurements: curves through points, the knee where a drive saturates, intervals."""
