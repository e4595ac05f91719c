"""Private inference: models of disjoint shards of the data answer together, and each token that comes out is paid for.

band      the law of one token: every shard is held inside a band around a public model, in whole numbers
split     which shard a user or a record belongs to, by a keyed hash
learning  one LoRA for each shard, without noise
folder    the files of an ensemble, all of them private
asking    tokens drawn from the ensemble, one after another
promise   the guarantee of so many tokens
"""
