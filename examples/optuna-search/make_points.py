"""Writes points.csv: points in a square, and whether each lies within a ring."""
import math
import random

random.seed(1)
with open("points.csv", "w") as file:
    file.write("x,y,label\n")
    for _ in range(400):
        x, y = random.uniform(-1, 1), random.uniform(-1, 1)
        file.write(f"{x:.4f},{y:.4f},{int(0.4 < math.hypot(x, y) < 0.9)}\n")
