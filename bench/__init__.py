"""What the engine costs, beside raw sqlite3 in the same run: `python -m bench`, or `make bench`.

Figures of two machines, or of two hours of one machine, do not compare: a disk's fsync alone differs tenfold. So
every figure that touches the disk stands beside raw sqlite3, which does the same work with the same durability (WAL,
synchronous=FULL) and the same two commits a step. The two are measured in turns, several times; medians are shown.

    workload.py    the conversation that both of them have
    raw.py         the least that a durable loop can do: sqlite3 and json
    haru.py        the same on the engine, nothing left out
    durable.py     microseconds a step, steps a second, bytes, load times
    workers.py     steps a second of two processes on one database
    processor.py   guards, contents and validation of arguments, without a disk
    resting.py     what 10,000 conversations at rest cost a process
    starting.py    import and `haru --help`, each in a process of its own
    figures.py     a figure, its target, and the table
"""
