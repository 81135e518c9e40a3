"""`pai-spot explain`: why a job ended as it did. `reading` finds job and verdict, `showing` prints them."""
