"""How things look: what both front ends print, and neither terminal input nor a turn in it."""
