"""The version of the package, which pyproject.toml and CMakeLists.txt have too."""

__version__ = "0.1.0"
