"""Stories of a real cluster's life, told with counted traffic: `python -m e2e.stories`. Each file is one story."""
