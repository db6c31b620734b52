"""Tiny random GLM-OCR and PP-DocLayoutV3 checkpoints: real architectures and file layouts, noise for weights.

    python -m tests.engine.tiny_models FOLDER

writes FOLDER/glm_ocr, FOLDER/layout and FOLDER/layout_unnamed (without id2label), in seconds. Needs torch and
transformers. The text model says printable ASCII only, and stops after about `STOP_AFTER` tokens: a constant channel
is carried through the network, and the row of the end token reads that channel alone.
"""

import json
import random
import string
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    GlmOcrConfig,
    GlmOcrForConditionalGeneration,
    PPDocLayoutV3Config,
    PPDocLayoutV3ForObjectDetection,
    PPDocLayoutV3ImageProcessor,
    PreTrainedTokenizerFast,
)
from transformers.models.glm46v.image_processing_glm46v import Glm46VImageProcessor
from transformers.models.glm46v.processing_glm46v import Glm46VProcessor
from transformers.models.glm46v.video_processing_glm46v import Glm46VVideoProcessor

from tests.engine.tiny_merger import MERGER_WIDTH

STOP_AFTER = 40
HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD_DIM = 64, 2, 4, 2, 16
VISION_HIDDEN, VISION_DEPTH, VISION_HEADS = 32, 2, 2
END = "<|endoftext|>"
MARKS = (END, "[MASK]", "[gMASK]", "[sMASK]", "<sop>", "<eop>", "<|system|>", "<|user|>", "<|assistant|>",
         "<|observation|>", "<|begin_of_image|>", "<|end_of_image|>", "<|begin_of_video|>", "<|end_of_video|>",
         "<|image|>", "<|video|>")  # fmt: skip
CHAT_TEMPLATE = (
    "[gMASK]<sop>{% for message in messages %}<|{{ message.role }}|>\n"
    "{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}"
    "{% if 'image' in part.type %}<|begin_of_image|><|image|><|end_of_image|>"
    "{% elif part.type == 'text' %}{{ part.text }}{% endif %}{% endfor %}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
LAYOUT_LABELS = ("abstract", "algorithm", "aside_text", "chart", "content", "display_formula", "doc_title",
                 "figure_title", "footer", "footer_image", "footnote", "formula_number", "header", "header_image",
                 "image", "inline_formula", "number", "paragraph_title", "reference", "reference_content", "seal",
                 "table", "text", "vertical_text", "vision_footnote")  # fmt: skip


def tokenizer() -> PreTrainedTokenizerFast:
    """A byte-level BPE of 512 tokens with GLM's marks behind them."""
    words = ["agreement", "party", "clause", "payment", "the", "of", "and", "Text", "Table", "Formula", "Recognition:"]
    chance = random.Random(0)
    corpus = [" ".join(chance.choices(words, k=30)) + f" {chance.random()}" for _ in range(300)] + [string.printable]
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    bpe.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=512, initial_alphabet=alphabet, show_progress=False))
    bpe.add_special_tokens([AddedToken(mark, special=True, normalized=False) for mark in MARKS])
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe, eos_token=END, pad_token=END, additional_special_tokens=list(MARKS[1:]),
        padding_side="left", model_max_length=131072, chat_template=CHAT_TEMPLATE,
    )  # fmt: skip


def glm_ocr_config(words: PreTrainedTokenizerFast) -> GlmOcrConfig:
    """As published, but for the sizes. The merger's width is the text model's, not the vision model's."""
    number = words.convert_tokens_to_ids
    half = HEAD_DIM // 2
    section = [half - 2 * (half * 3 // 8), half * 3 // 8, half * 3 // 8]
    text = {
        "vocab_size": -(-len(words) // 128) * 128, "hidden_size": HIDDEN, "intermediate_size": MERGER_WIDTH,
        "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM, "attention_bias": False, "hidden_act": "silu", "max_position_embeddings": 131072,
        "rms_norm_eps": 1e-5, "pad_token_id": number(END), "eos_token_id": [number(END), number("<|user|>")],
        "num_nextn_predict_layers": 1, "dtype": "bfloat16",
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": section,
                            "partial_rotary_factor": 1.0},
    }  # fmt: skip
    vision = {
        "depth": VISION_DEPTH, "hidden_size": VISION_HIDDEN, "num_heads": VISION_HEADS, "attention_bias": True,
        "intermediate_size": 4 * VISION_HIDDEN, "out_hidden_size": HIDDEN, "image_size": 336, "patch_size": 14,
        "spatial_merge_size": 2, "temporal_patch_size": 2, "in_channels": 3, "rms_norm_eps": 1e-5,
        "hidden_act": "silu",
    }  # fmt: skip
    marks = {f"{name}_token_id": number(f"<|{mark}|>") for name, mark in (
        ("image", "image"), ("video", "video"), ("image_start", "begin_of_image"), ("image_end", "end_of_image"),
        ("video_start", "begin_of_video"), ("video_end", "end_of_video"))}  # fmt: skip
    return GlmOcrConfig(text_config=text, vision_config=vision, tie_word_embeddings=False, dtype="bfloat16", **marks)


@torch.no_grad()
def randomise(model: GlmOcrForConditionalGeneration, words: PreTrainedTokenizerFast) -> None:
    """Noise that says printable text and comes to an end."""
    for name, weight in model.named_parameters():
        if weight.dim() > 1:
            wide = "embed" in name or "lm_head" in name
            weight.normal_(0, 0.35 if wide else weight[0].numel() ** -0.5)
    text, head = model.model.language_model, model.lm_head.weight
    ids = range(len(words))
    printable = [i for i in ids if words.convert_ids_to_tokens(i) not in MARKS and words.decode([i]).isprintable()
                 and words.decode([i]).isascii() and words.decode([i])]  # fmt: skip
    mute = torch.ones(head.shape[0], dtype=torch.bool)
    mute[printable] = False
    head[mute] = 0
    head[:, 0] = 0
    text.embed_tokens.weight[:, 0] = 1
    for layer in text.layers:
        layer.post_self_attn_layernorm.weight[0] = 0
        layer.post_mlp_layernorm.weight[0] = 0
    sample = torch.randint(0, 256, (8, 64))
    state = text(
        inputs_embeds=text.embed_tokens.weight[sample], position_ids=torch.arange(64).expand(3, 8, 64)
    ).last_hidden_state
    best = (state @ head.T)[..., printable].amax(-1)
    # Greedy decoding stops where the end token's constant score beats the best word: the top 1/STOP_AFTER of steps.
    threshold = best.flatten().quantile(1 / STOP_AFTER)
    head[words.convert_tokens_to_ids(END), 0] = threshold / state[..., 0].mean()


def add_nextn_layer(folder: Path) -> None:
    """The extra layer for speculative decoding, under the names the published checkpoint uses."""
    file = folder / "model.safetensors"
    tensors = load_file(file)
    first, extra = "model.language_model.layers.0.", f"model.language_model.layers.{LAYERS}."
    tensors |= {key.replace(first, extra): value.clone() for key, value in tensors.items() if key.startswith(first)}
    for norm in ("enorm", "hnorm", "shared_head.norm"):
        tensors[f"{extra}{norm}.weight"] = torch.ones(HIDDEN, dtype=torch.bfloat16)
    tensors[f"{extra}eh_proj.weight"] = torch.randn(HIDDEN, 2 * HIDDEN).to(torch.bfloat16)
    tensors[f"{extra}embed_tokens.weight"] = tensors["model.language_model.embed_tokens.weight"].clone()
    tensors[f"{extra}shared_head.head.weight"] = tensors["lm_head.weight"].clone()
    save_file(tensors, file, metadata={"format": "pt"})


def write_glm_ocr(folder: Path) -> None:
    """Weights, tokenizer and processor files."""
    torch.manual_seed(0)
    words = tokenizer()
    model = GlmOcrForConditionalGeneration(glm_ocr_config(words)).float().eval()
    randomise(model, words)
    ends = [words.convert_tokens_to_ids(mark) for mark in (END, "<|user|>")]
    model.generation_config.eos_token_id, model.generation_config.pad_token_id = ends, ends[0]
    model.to(torch.bfloat16).save_pretrained(folder)
    add_nextn_layer(folder)
    pictures = Glm46VImageProcessor(size={"shortest_edge": 112 * 112, "longest_edge": 28 * 28 * 15000})
    Glm46VProcessor(
        image_processor=pictures, tokenizer=words, video_processor=Glm46VVideoProcessor(), chat_template=CHAT_TEMPLATE
    ).save_pretrained(folder)
    words.save_pretrained(folder)
    as_published = json.loads(pictures.to_json_string()) | {"processor_class": "Glm46VProcessor"}
    (folder / "preprocessor_config.json").write_text(json.dumps(as_published))


@torch.no_grad()
def write_layout(folder: Path, *, named: bool) -> None:
    """A detector that sees text, and sometimes tables, wherever its noise points."""
    torch.manual_seed(0)
    names = dict(enumerate(LAYOUT_LABELS))
    labels = {"id2label": names, "label2id": {v: k for k, v in names.items()}} if named else {"num_labels": len(names)}
    backbone = {
        "model_type": "hgnet_v2", "arch": "L", "return_idx": [0, 1, 2, 3], "num_channels": 3, "embedding_size": 8,
        "out_features": ["stage1", "stage2", "stage3", "stage4"], "depths": [1] * 4, "hidden_sizes": [16] * 4,
        "stem_channels": [3, 8, 8], "stage_in_channels": [8, 16, 16, 16], "stage_mid_channels": [8] * 4,
        "stage_out_channels": [16] * 4, "stage_num_blocks": [1] * 4, "stage_numb_of_layers": [1] * 4,
        "stage_kernel_size": [3] * 4, "stage_downsample": [False, True, True, True],
        "stage_light_block": [False, False, True, True], "freeze_stem_only": True, "freeze_at": 0,
        "freeze_norm": True, "lr_mult_list": [0, 0.05, 0.05, 0.05, 0.05],
    }  # fmt: skip
    config = PPDocLayoutV3Config(
        backbone_config=backbone, encoder_hidden_dim=32, encoder_in_channels=[16] * 3, feat_strides=[8, 16, 32],
        encoder_layers=1, encoder_ffn_dim=32, encoder_attention_heads=2, mask_feature_channels=[16, 16],
        x4_feat_dim=16, d_model=32, num_prototypes=8, num_queries=12, decoder_in_channels=[32] * 3,
        decoder_ffn_dim=32, decoder_layers=1, decoder_attention_heads=2, num_denoising=2, global_pointer_head_size=8,
        **labels,
    )  # fmt: skip
    model = PPDocLayoutV3ForObjectDetection(config).eval()
    for name, weight in model.named_parameters():
        if name.endswith("bias") and ("score_head" in name or "class_embed" in name):
            weight.fill_(-4.0)
            weight[LAYOUT_LABELS.index("text")] = 1.5
            weight[LAYOUT_LABELS.index("table")] = 0.9
    model.save_pretrained(folder)
    PPDocLayoutV3ImageProcessor(size={"height": 160, "width": 160}).save_pretrained(folder)


def main() -> None:
    """Write everything below the folder given."""
    folder = Path(sys.argv[1])
    write_glm_ocr(folder / "glm_ocr")
    write_layout(folder / "layout", named=True)
    write_layout(folder / "layout_unnamed", named=False)


if __name__ == "__main__":
    main()
