"""Measurements of Geomill, and of any deployment of it.

`python -m bench` puts load on a server, its own or any by address and key, and compares with bare `ogr2ogr` in the same
run, goal by goal. The other programs measure one part each. The load comes from one process that
builds every request beforehand; it measures itself and says when it is what limits the figures.

What always holds: a figure that is compared is measured in the same run, and every answer is judged: what was not
served as it should be is an error with a name and never a latency.
"""
