"""The guard lab: recorded conversations judged again under other guards, and what that would have saved or destroyed.

recordings.py   conversations from a database, from JSON Lines or from cassettes, as journals
judging.py      a table's guards on a recording, without a model: what they would have done, and from where on
                that is no longer a fact
loops.py        what a true loop is, told from the recording alone
classics.py     the rules that people use, as baselines
plan.py         an experiment as a file
outcomes.py     what came of it: counts with intervals, paired
picture.py      the one plot (needs the extra `lab`)
"""
