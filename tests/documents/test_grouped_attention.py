"""Attention by groups is the attention of torch, for the prompt and for one new token."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tacit.documents.language_models.grouped_attention import grouped_attention, use_grouped_attention  # noqa: E402


@pytest.mark.parametrize(("tokens", "seen"), [(1, 7), (5, 5)])
@pytest.mark.parametrize(("heads", "shared"), [(6, 2), (4, 4), (3, 1)])
def test_it_equals_the_attention_of_torch(tokens, seen, heads, shared):
    generator = torch.Generator().manual_seed(heads)
    query = torch.randn(3, heads, tokens, 8, generator=generator)
    key, value = (torch.randn(3, shared, seen, 8, generator=generator) for _ in range(2))
    made, _ = grouped_attention(None, query, key, value, None, scaling=0.3)
    repeated = (each.repeat_interleave(heads // shared, dim=1) for each in (key, value))
    usual = torch.nn.functional.scaled_dot_product_attention(query, *repeated, is_causal=tokens > 1, scale=0.3)
    torch.testing.assert_close(made, usual.transpose(1, 2), rtol=1e-5, atol=1e-5)


def test_padding_is_refused():
    each = torch.zeros(1, 1, 1, 4)
    with pytest.raises(ValueError, match="padding"):
        grouped_attention(None, each, each, each, torch.zeros(1), scaling=1.0)


def test_a_small_model_writes_the_same_numbers_with_it():
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(1)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=50, hidden_size=24, intermediate_size=32, num_hidden_layers=2, num_attention_heads=6,
            num_key_value_heads=2, max_position_embeddings=64,
        )
    ).eval()  # fmt: skip
    prompt, following = torch.tensor([[3, 7, 1, 9]]), torch.tensor([[5], [8]])

    def numbers():
        with torch.inference_mode():
            past = model(input_ids=prompt, use_cache=True).past_key_values
            past.batch_repeat_interleave(2)
            return model(input_ids=following, past_key_values=past, use_cache=True).logits

    before = numbers()
    use_grouped_attention(model)
    torch.testing.assert_close(numbers(), before, rtol=1e-4, atol=1e-5)
