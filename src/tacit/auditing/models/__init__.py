"""Attacks that measure how much a trained model gives away about its training texts.

scores         per-example losses of language models, classifiers, autoencoders and functions
membership     was this text in the training data? loss, calibrated losses, shadow models (LiRA)
difficulty, rmia, min_k   further signals of membership
ceilings       what a claim allows these attacks at most
blind          the same question without the model: do the files differ by themselves?
rates          shares and areas under curves with their intervals
one_run        a lower bound on epsilon from a single training run
curve_audit    the same for an assumed family of trade-off curves (trade_offs), which is tighter
gradient_canaries   scores for it, from canaries among the gradients of a step
topic_canaries      scores for it, from canaries among the texts of topics by noisy statistics
canaries       made-up secrets put into the training data, and how well the model knows them (exposure)
extraction     what the model writes by itself, and whether it stands in the training data
memorization   whether a rewriting model repeats its pre-training text
synthetic      synthetic texts beside the private rows they were learned from
overlap        longest common runs and near-duplicates of token sequences
"""
