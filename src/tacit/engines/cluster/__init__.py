"""The job on a cluster: a data set of many files in, a folder of parts (or one file) and one card out, over Ray.

    storage    folders on this machine or anywhere fsspec reaches
    dataset    the files of a data set, checked against each other before any noise is drawn
    parts      what workers do: cut files into parts, rewrite the blocks of a part, commit the part
    staging    the folder of an unfinished job: the key, the finished parts, and how they become the output
    session    Ray itself, started on this machine or joined
    outcomes   what workers say about their parts
    rewrite    the job: what is checked and planned before it runs
    run        one run of it
    crew       other work handed out to actors (codebooks and evaluation use it, see `tacit.jobs.cluster`)

The private step is `tacit.engines.blocks.rewrite_block`, as on one machine, with the same cuts: for one file, the same
key gives the same bytes as the local engine.
"""
