#!/bin/sh
# How the built-in models were trained, in an empty folder with the public text:
#
#     cut -f1 spa.tsv ukr.tsv | LC_ALL=C sort -u > tatoeba-english.txt     # 191,460 sentences
#
# Text: the English side of the Tatoeba pairs at manythings.org (tatoeba.org, CC BY 2.0 FR). Nothing else was learned
# from, except by adept-20-wide, which also read the training part of WikiText-2 (raw,
# CC BY-SA 3.0; wikitext2.txt). Each command is also in the tacit.json of the model it made, with what was measured on
# held-out sentences;
# bart-20, the first stage of adept-20, and narrow-20 were ended sooner than first planned ("steps_planned" there).
set -e
TEXT=tatoeba-english.txt
NAME="Tatoeba English sentences (tatoeba.org, CC BY 2.0 FR), from the Spanish and Ukrainian pairs of manythings.org"
train() { kind=$1; shift; tacit pretrain "$kind" "$@" --public "$NAME" --half; }

# DP-BART: length 20 from scratch, length 40 from its weights and joined sentences.
train autoencoder $TEXT -o bart-20 --kind bart --length 20 --vocabulary 8000 --width 192 --layers 2 --feed-forward 384 \
    --clip 1 --plain-share 0.25 --steps 1350 --batch-size 64 --learning-rate 0.0015 --evaluate-every 250 --held-out 500
train autoencoder $TEXT --from bart-20 --length 40 --join -o bart-40 --plain-share 0.25 --steps 450 --batch-size 32 \
    --learning-rate 0.0007 --evaluate-every 150 --held-out 500

# The same without clipping, as the BART of the paper: what DP-BART-PR gains over -CLV is what it learns about clipping.
train autoencoder $TEXT -o bart-20-unclipped --kind bart --length 20 --vocabulary 8000 --width 192 --layers 2 \
    --feed-forward 384 --plain-share 0.25 --steps 1350 --batch-size 64 --learning-rate 0.0015 --evaluate-every 250 \
    --held-out 500

# ADePT: from scratch, on, on with mixed texts, on with joined ones: long texts were what it still got wrong.
train autoencoder $TEXT -o adept-20-first --kind adept --length 20 --vocabulary 4000 --lowercase --width 256 \
    --embedding 128 --clip 5 --plain-share 0.25 --steps 5500 --batch-size 64 --learning-rate 0.003 --evaluate-every 500
train autoencoder $TEXT --from adept-20-first -o adept-20b --plain-share 0.25 --steps 4000 --batch-size 64 \
    --learning-rate 0.0015 --evaluate-every 250
train autoencoder $TEXT --from adept-20b -o adept-20c --plain-share 0.25 --mixed-share 0.3 --steps 2000 \
    --batch-size 64 --learning-rate 0.0008 --evaluate-every 250
train autoencoder $TEXT --from adept-20c --join -o adept-20 --plain-share 0.25 --mixed-share 0.2 --steps 2000 \
    --batch-size 64 --learning-rate 0.0015 --evaluate-every 250

# Narrow: with Gaussian noise from scratch for epsilon 50 to 1,000; on with Laplace noise on the simplex for 50 and 100.
train autoencoder $TEXT -o narrow-20 --kind narrow --length 20 --vocabulary 4000 --lowercase --width 128 --layers 2 \
    --feed-forward 256 --latent-positions 8 --latent-width 16 --clip 1 --epsilon 50 --epsilon 100 --epsilon 250 \
    --epsilon 500 --epsilon 1000 --delta 1e-6 --plain-share 0.25 --steps 5500 --batch-size 64 --learning-rate 0.0015 \
    --evaluate-every 500 --held-out 1280
train noise narrow-20 $TEXT -o narrow-20-low --bound l1 --noise laplace --epsilon 50 --epsilon 100 --plain-share 1 \
    --content 0.002 --steps 1000 --batch-size 48 --learning-rate 0.001 --evaluate-every 200 --held-out 1280

# ADePT as in the DP-BART paper: a state of 2 x 512 numbers, general text, long and short, and no style but that of the
# text. (It was saved with --half first, and its 16-bit weights then in 8 bits; the BLEU in tacit.json is that of the
# latter.) It is there for comparison: at the same epsilon 1,024 numbers carry more noise than the 512 of adept-20.
python3 - <<'END'
import re
pieces = set()
for line in open("wikitext2.txt", encoding="utf-8"):
    if line.strip() and not line.strip().startswith("="):
        for sentence in re.split(r"(?<= [.!?]) ", re.sub(r" @([-,.])@ ", r"\1", line.strip())):
            words = sentence.split()
            parts = [words[start : start + 15] for start in range(0, len(words), 15)]
            pieces |= {" ".join(part) for part in parts if len(part) >= 4}
pieces |= set(open("tatoeba-english.txt", encoding="utf-8").read().split("\n")[:-1])
open("general-english.txt", "w", encoding="utf-8").write("\n".join(sorted(pieces)) + "\n")        # 341,730 texts
END
tacit pretrain autoencoder general-english.txt -o adept-20-wide --kind adept --length 20 --vocabulary 4000 --lowercase \
    --width 512 --embedding 128 --clip 5 --steps 6000 --batch-size 64 --learning-rate 0.003 --evaluate-every 250 \
    --patience 1000 --held-out 500 --eight-bits \
    --public "WikiText-2 (wikipedia.org, CC BY-SA 3.0) in pieces of up to 15 words, and $NAME"

# The large files of each folder were then packed, without loss:
python -m tacit.documents.autoencoders.packed bart-20 bart-40 bart-20-unclipped adept-20 adept-20-wide narrow-20 narrow-20-low
