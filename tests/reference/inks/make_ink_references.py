#!/usr/bin/env python3
"""Writes inks.jpg, a JPEG of four inks, and inks.npy, what Pillow makes of it in red, green and blue. Needs Pillow and
NumPy. Run in this folder."""
import numpy as np
from PIL import Image

y, x = np.mgrid[0:13, 0:21]
inks = np.stack([12 * x, 19 * y, 250 - 6 * x - 9 * y, 4 * x + 8 * y], 2).astype(np.uint8)
Image.fromarray(inks, "CMYK").save("inks.jpg", quality=95)
np.save("inks.npy", np.asarray(Image.open("inks.jpg").convert("RGB"))[None])
