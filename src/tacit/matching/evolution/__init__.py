"""Evolution: new candidate sentences for a corpus, made against a sketch that is fixed. It costs nothing.

A sketch is released once; every sentence that is tried against it afterwards is tried against public numbers. So there
is no limit to the rounds, and the promise of the corpus stays that of the sketch. (Private Evolution, Lin et al. 2024
and Xie et al. 2024, asks the private rows again in every round, and pays for it.)

fit         how well a sentence fits a label, by the release alone; the words that fit a label
phrases     how usual a sequence of words is in public text: what is kept must read like it
variations  new sentences from good ones, without a model: words replaced, frames filled in
rounds      the rounds: vary, judge, keep; they go on after an interruption (`tacit.matching.record`)
sources     the pool of what was kept, with the licenses of what it was made from
"""
