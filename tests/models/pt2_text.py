"""Models of transformers, in small configurations, that are exported as .pt2 as users export them."""
import torch
import transformers

VOCABULARY, BATCH, LENGTH, CLASSES = 96, 4, 16, 3
SMALL = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 64, "max_position_embeddings": 64}
DECODER = {**SMALL, "num_key_value_heads": 2, "use_cache": False, "pad_token_id": None,
           "bos_token_id": 1, "eos_token_id": 2}
ENCODER_DECODER = {"vocab_size": VOCABULARY, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
                   "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64,
                   "decoder_ffn_dim": 64, "use_cache": False}
PICTURE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
           "image_size": 32, "patch_size": 8, "num_labels": CLASSES}


def hugging(name, config, **options):
    def constructor():
        return getattr(transformers, name)(getattr(transformers, config)(**options))
    return constructor


def tokens(generator, length=LENGTH):
    return torch.randint(3, VOCABULARY, (BATCH, length), generator=generator)


def words(generator):
    return {"input_ids": tokens(generator)}, torch.randint(0, VOCABULARY, (BATCH, LENGTH), generator=generator)


def masked(generator):
    """Sentences of different lengths: a label an example."""
    ids, mask = tokens(generator), torch.ones(BATCH, LENGTH, dtype=torch.long)
    mask[1, LENGTH - 5:] = 0
    mask[3, LENGTH - 2:] = 0
    return ({"input_ids": ids * mask, "attention_mask": mask},
            torch.randint(0, CLASSES, (BATCH,), generator=generator))


def masked_words(generator):
    inputs, _ = masked(generator)
    return inputs, torch.randint(0, VOCABULARY, (BATCH, LENGTH), generator=generator)


def segments(generator):
    inputs, labels = masked(generator)
    kinds = torch.zeros(BATCH, LENGTH, dtype=torch.long)
    kinds[:, LENGTH // 2:] = 1
    return {**inputs, "token_type_ids": kinds}, labels


def pairs(generator):
    return ({"input_ids": tokens(generator), "decoder_input_ids": tokens(generator, 10)},
            torch.randint(0, VOCABULARY, (BATCH, 10), generator=generator))


def pictures(generator):
    return ({"pixel_values": torch.randn(BATCH, 3, 32, 32, generator=generator)},
            torch.randint(0, CLASSES, (BATCH,), generator=generator))


def sounds(generator):
    return ({"input_values": torch.randn(BATCH, 1600, generator=generator)},
            torch.randint(0, CLASSES, (BATCH,), generator=generator))


def spectra(generator):
    return ({"input_features": torch.randn(BATCH, 16, 40, generator=generator),
             "decoder_input_ids": tokens(generator, 10)},
            torch.randint(0, VOCABULARY, (BATCH, 10), generator=generator))


def captions(generator):
    return ({"input_ids": tokens(generator), "pixel_values": torch.randn(BATCH, 3, 32, 32, generator=generator)},
            torch.arange(BATCH))


def clip():
    text = {k: v for k, v in SMALL.items() if k != "vocab_size"}
    config = transformers.CLIPConfig(
        text_config={**text, "vocab_size": VOCABULARY, "eos_token_id": 2, "projection_dim": 16},
        vision_config={k: v for k, v in {**PICTURE, "projection_dim": 16}.items() if k != "num_labels"},
        projection_dim=16)
    return transformers.CLIPModel(config)


def gpt2(**options):
    return hugging("GPT2LMHeadModel", "GPT2Config", vocab_size=VOCABULARY, n_positions=64, n_embd=32, n_layer=2,
                   n_head=4, use_cache=False, **options)


BERT = {**SMALL, "num_labels": CLASSES}
WAVES = {"vocab_size": 32, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 64, "conv_dim": (16, 16, 16), "conv_stride": (5, 2, 2), "conv_kernel": (10, 3, 3),
         "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4, "num_labels": CLASSES,
         "classifier_proj_size": 16, "mask_time_prob": 0.0, "mask_feature_prob": 0.0, "apply_spec_augment": False}

# name: (constructor, inputs and labels)
MODELS = {
    "bert": (hugging("BertForSequenceClassification", "BertConfig", **BERT), segments),
    "bert_mlm": (hugging("BertForMaskedLM", "BertConfig", **SMALL), masked_words),
    "roberta": (hugging("RobertaForSequenceClassification", "RobertaConfig", **BERT), masked),
    "distilbert": (hugging("DistilBertForSequenceClassification", "DistilBertConfig", vocab_size=VOCABULARY, dim=32,
                           n_layers=2, n_heads=4, hidden_dim=64, num_labels=CLASSES), masked),
    "albert": (hugging("AlbertForSequenceClassification", "AlbertConfig", embedding_size=16, **BERT), masked),
    "electra": (hugging("ElectraForSequenceClassification", "ElectraConfig", embedding_size=16, **BERT), masked),
    "deberta_v2": (hugging("DebertaV2ForSequenceClassification", "DebertaV2Config", relative_attention=True,
                           position_buckets=8, pos_att_type=["c2p", "p2c"], **BERT), masked),
    "modernbert": (hugging("ModernBertForSequenceClassification", "ModernBertConfig", pad_token_id=0,
                           cls_token_id=1, sep_token_id=2, bos_token_id=1, eos_token_id=2, local_attention=8, **BERT),
                   masked),
    "gpt2": (gpt2(), words),
    "gpt2_masked": (gpt2(pad_token_id=0), masked_words),
    "gpt_neox": (hugging("GPTNeoXForCausalLM", "GPTNeoXConfig", use_cache=False, **SMALL), words),
    "bloom": (hugging("BloomForCausalLM", "BloomConfig", vocab_size=VOCABULARY, hidden_size=32, n_layer=2, n_head=4,
                      use_cache=False), words),
    "opt": (hugging("OPTForCausalLM", "OPTConfig", vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2,
                    ffn_dim=64, num_attention_heads=4, max_position_embeddings=64, word_embed_proj_dim=32,
                    use_cache=False), words),
    "llama": (hugging("LlamaForCausalLM", "LlamaConfig", **DECODER), words),
    "qwen2": (hugging("Qwen2ForCausalLM", "Qwen2Config", **DECODER), words),
    "qwen3": (hugging("Qwen3ForCausalLM", "Qwen3Config", head_dim=8, **DECODER), words),
    "gemma": (hugging("GemmaForCausalLM", "GemmaConfig", head_dim=8, **{**DECODER, "pad_token_id": 0}), words),
    "gemma2": (hugging("Gemma2ForCausalLM", "Gemma2Config", head_dim=8, sliding_window=8,
                       **{**DECODER, "pad_token_id": 0}), words),
    "gemma3": (hugging("Gemma3ForCausalLM", "Gemma3TextConfig", head_dim=8, sliding_window=8,
                       **{**DECODER, "pad_token_id": 0}), words),
    "mistral": (hugging("MistralForCausalLM", "MistralConfig", sliding_window=8, **DECODER), masked_words),
    "mixtral": (hugging("MixtralForCausalLM", "MixtralConfig", num_local_experts=4, num_experts_per_tok=2, **DECODER),
                words),
    "qwen3_moe": (hugging("Qwen3MoeForCausalLM", "Qwen3MoeConfig", head_dim=8, num_experts=4, num_experts_per_tok=2,
                          moe_intermediate_size=32, **DECODER), words),
    "phi": (hugging("PhiForCausalLM", "PhiConfig", **DECODER), words),
    "phi3": (hugging("Phi3ForCausalLM", "Phi3Config", **{**DECODER, "pad_token_id": 0}), words),
    "falcon": (hugging("FalconForCausalLM", "FalconConfig", vocab_size=VOCABULARY, hidden_size=32,
                       num_hidden_layers=2, num_attention_heads=4, use_cache=False), words),
    "t5": (hugging("T5ForConditionalGeneration", "T5Config", vocab_size=VOCABULARY, d_model=32, d_kv=8, d_ff=64,
                   num_layers=2, num_heads=4, use_cache=False, decoder_start_token_id=0), pairs),
    "bart": (hugging("BartForConditionalGeneration", "BartConfig", max_position_embeddings=64, **ENCODER_DECODER),
             pairs),
    "marian": (hugging("MarianMTModel", "MarianConfig", max_position_embeddings=64, pad_token_id=0,
                       decoder_start_token_id=0, **ENCODER_DECODER), pairs),
    "hf_vit": (hugging("ViTForImageClassification", "ViTConfig", **PICTURE), pictures),
    "hf_deit": (hugging("DeiTForImageClassification", "DeiTConfig", **PICTURE), pictures),
    "hf_beit": (hugging("BeitForImageClassification", "BeitConfig", use_relative_position_bias=True, **PICTURE),
                pictures),
    "hf_dinov2": (hugging("Dinov2ForImageClassification", "Dinov2Config",
                          **{k: v for k, v in PICTURE.items() if k != "intermediate_size"}), pictures),
    "hf_resnet": (hugging("ResNetForImageClassification", "ResNetConfig", embedding_size=8, hidden_sizes=[8, 16],
                          depths=[1, 1], layer_type="basic", num_labels=CLASSES), pictures),
    "segformer": (hugging("SegformerForImageClassification", "SegformerConfig", num_encoder_blocks=2, depths=[1, 1],
                          sr_ratios=[2, 1], hidden_sizes=[16, 32], patch_sizes=[7, 3], strides=[4, 2],
                          num_attention_heads=[1, 2], mlp_ratios=[2, 2], num_labels=CLASSES), pictures),
    "clip": (clip, captions),
    "whisper": (hugging("WhisperForConditionalGeneration", "WhisperConfig", num_mel_bins=16, max_source_positions=20,
                        max_target_positions=32, pad_token_id=0, decoder_start_token_id=1, **ENCODER_DECODER), spectra),
    "wav2vec2": (hugging("Wav2Vec2ForSequenceClassification", "Wav2Vec2Config", **WAVES), sounds),
    "hubert": (hugging("HubertForSequenceClassification", "HubertConfig", **WAVES), sounds),
    "mamba": (hugging("MambaForCausalLM", "MambaConfig", vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2,
                      state_size=8, use_cache=False), words),
    "rwkv": (hugging("RwkvForCausalLM", "RwkvConfig", vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2,
                     use_cache=False), words),
}


def build(name):
    """(model, inputs, labels, loss, dimension of the classes)"""
    constructor, draw = MODELS[name]
    torch.manual_seed(5)
    model = constructor()
    generator = torch.Generator().manual_seed(6)
    inputs, labels = draw(generator)
    return model, inputs, labels, "softmax_cross_entropy", -1
