"""Simplified Chinese of ``learn``."""

from __future__ import annotations

from collections.abc import Mapping

from kvgauge.render.messages import lab_zh

NOTES: Mapping[str, str] = {
    **lab_zh.NOTES,
    "characters_unknown": "词表中没有的字符：{count} 个；它们共用一个编号",
    "norms_elsewhere": "该模型在注意力和 FFN 之后也有归一化；这里各只列出之前的一个",
    "layers_not_drawn": "有 {count} 层形状不同，没有画出；缓存总量已包含它们",
    "layers_left_out": "未列出 {count} 层：这里没有描述它们的类型",
}

MESSAGES: Mapping[str, str] = {
    **lab_zh.MESSAGES,
    "learn_about": "每个主题都会真正运行一遍；显示的每个数字都是当场算出的。",
    "help.topics": "主题",
    "help.verb.learn": "把数字背后的概念运行一遍：推理、缓存、激活。",
    "help.verb.learn activations": "一层中 15 个激活的一生：维度、字节、去向、由谁优化。",
    "help.option.tokens": "一条序列的 token 数：4096、32k。",
    "help.option.dtype": "激活的数据类型：fp32、bf16、fp16、fp8。默认为模型自身的类型。",
    # 激活
    "life_title": "{model}：一层处理 {tokens}（{dtype}）时产生什么，之后去了哪里",
    "life_group_all": "全部 {count} 层",
    "life_group_some": "{count} 层（{layers}）",
    "life_group_one": "{count} 层（{layers}）",
    "life_group_window": "{group}，每个查询只看 {window} 个 token",
    "column_number": "#",
    "column_activation": "激活",
    "column_prefill": "预填充",
    "column_decode": "解码",
    "column_fate": "去向",
    "column_optimiser": "由谁优化",
    "column_dimensions": "维度",
    "life.layer_input": "本层输入",
    "life.normed_input": "归一化后的输入",
    "life.query": "Q",
    "life.key": "K",
    "life.value": "V",
    "life.query_latent": "Q 的潜向量",
    "life.query_gate": "各头的门",
    "life.latent": "潜向量",
    "life.rope_key": "带位置的 K",
    "life.absorbed_query": "对潜向量的 Q",
    "life.made_key": "解压出的 K",
    "life.made_value": "解压出的 V",
    "life.latent_outputs": "潜向量输出",
    "life.projected": "各投影",
    "life.convolution_state": "卷积状态",
    "life.state": "循环状态",
    "life.mixed": "读出的内容",
    "life.scores": "分数 Q·K",
    "life.weights": "softmax 权重",
    "life.head_outputs": "各头输出",
    "life.concatenated": "各头拼接",
    "life.attention_output": "输出投影之后",
    "life.post_attention": "加上输入",
    "life.normed_post_attention": "再归一化",
    "life.cross_normed": "再归一化",
    "life.cross_query": "对编码器的 Q",
    "life.cross_key": "编码器的 K",
    "life.cross_value": "编码器的 V",
    "life.cross_scores": "对编码器的分数",
    "life.cross_weights": "softmax 权重",
    "life.cross_outputs": "各头输出",
    "life.cross_concatenated": "各头拼接",
    "life.cross_output": "输出投影之后",
    "life.post_cross": "再相加",
    "life.gate": "gate_proj",
    "life.up": "up_proj",
    "life.middle": "SiLU(gate) · up",
    "life.activated": "激活(gate) · up",
    "life.activated_plain": "激活(up)",
    "life.down": "down_proj",
    "life.layer_output": "本层输出",
    "fate.residual": "留待相加",
    "fate.discarded": "丢弃",
    "fate.cached": "KV 缓存",
    "fate.state": "保留并被覆盖",
    "fate.passed_on": "下一层",
    "optimiser.flash_attention": "FlashAttention",
    "optimiser.paged_attention": "PagedAttention",
    "life_fates": "{fates}。（归一化的输出不计入。）",
    "phase.prefill": "预填充",
    "phase.decode": "解码",
    "life_join": "，",
    "fates.cached": "{count} 个留在缓存",
    "fates.state": "{count} 个作为状态保留（与长度无关）",
    "fates.passed_on": "{count} 个传给下一层",
    "fates.residual": "{count} 个留待下一次相加",
    "fates.discarded": "{count} 个读完即丢",
    "life_measured": (
        "实测（{phase}）：{layers} 层、每层 {count} 个激活，维度、字节和每一步持有的量都与计算一致；峰"
        "值 {peak}（{at}）。"
    ),
    "life_measured_other": (
        "实测（{phase}）：{layers} 层、每层 {count} 个激活，峰值 {peak}（{at}）；与计算不同的有：{names}。"
    ),
    "help.option.measure": "真正运行模型（Llama 或 Qwen3 类的文件夹），记录各层产生的激活。",
    "life_peak_label": "一层的峰值",
    "life_peak": (
        "预填充 {prefill}（此时：{prefill_at}），用 FlashAttention 为 {prefill_flash}；"
        "解码 {decode}，{decode_flash}"
    ),
    "life_vertical_label": "纵向",
    "life_vertical": "每个 token {size} 传给下一层，用完即释放",
    "life_horizontal_label": "横向",
    "life_horizontal": "每层 {size} 留给之后的 token，这些层共 {total}",
    "life_encoder": "E 为 {encoder}：编码器输出的位置数，它们的 K 和 V 只算一次。",
    "life_causal": (
        "T 为 {tokens}；解码时只算一个 token，它看到的同样多。分数按普通注意力计：每头 T × T；"
        "因果掩码让其中一半用不到。FlashAttention 省下的是分数的内存和读写，K 和 V 一个字节也不少。"
    ),
    # 走一遍
    "help.verb.learn walk": "让一段文本真正走过一个小模型：从输入到下一个 token 的六步，再到带缓存的生成。",
    "help.about.learn walk": (
        "不写 TEXT 时为“今天天气”。不写 --model 时用随包附带的 0.4 MB 小模型：一个字符就是一个 token，"
        "它只学过几十句话。FOLDER 可以是任何 Llama 或 Qwen3 模型的文件夹：config.json、*.safetensors、"
        "tokenizer.json。"
    ),
    "help.option.learn walk.model": "Llama 或 Qwen3 模型的文件夹。默认为随包附带的小模型。",
    "help.option.ids": "用编号给出文本：1,2,3。适用于没有 tokenizer.json 的模型。",
    "help.option.new_tokens": "最多生成多少个 token。默认 16。",
    "help.option.temperature": "0（默认）取概率最高的 token；1 按模型给出的概率抽取。",
    "help.option.seed": "抽取的随机种子。默认 0。",
    "column_position": "位置",
    "column_token": "token",
    "column_token_id": "编号",
    "column_row": "对应行的开头",
    "column_matrix": "矩阵",
    "column_shape": "形状",
    "column_numbers_in": "数字个数",
    "column_begins": "开头",
    "column_vector": "向量",
    "column_heads": "头数 × 宽",
    "column_head_0": "0 号头的开头",
    "column_product": "Q·K",
    "column_score": "÷ √D",
    "column_share": "占比",
    "column_value_begins": "V 的开头",
    "column_head": "头",
    "column_stage": "阶段",
    "column_width": "数字个数",
    "column_logit": "logit",
    "column_layer": "层",
    "column_key_begins": "K 的开头",
    "column_output_begins": "输出的开头",
    "column_likeness": "相似度",
    "column_guess": "猜测",
    "column_step_number": "步",
    "column_chosen": "下一个 token",
    "column_held": "缓存实占",
    "column_size_says": "kvgauge size",
    "column_read": "读取",
    "column_computed": "新算 K、V",
    "column_computed_without": "不用缓存",
    "column_ms": "毫秒",
    "column_ms_without": "不用缓存",
    "column_query_begins": "Q 的开头",
    "column_scores": "最新的分数",
    "walk_title": "{text} 走过 {model} 的 {layers} 层：下面每个数字都是刚刚算出的",
    "walk_step_1": "第 1 步：文字变成编号",
    "walk_ids": "{count} 个 token，每个是词表（共 {vocabulary} 个）中的一个编号。只是查表，在 CPU 上完成。",
    "walk_one_character": "这个模型里一个字符就是一个 token；真实的词表里还有词和词的片段。",
    "walk_pieces": "一个 token 是词表中的一段文字：可能是一个字，也可能更短或更长。",
    "walk_step_2": "第 2 步：编号取出一行",
    "walk_rows": "嵌入表有 {rows} × {columns} 个训练得到的数字；编号就是行号。",
    "walk_cut": "共 {count} 个 token，这里是最后 {shown} 个。",
    "walk_step_3": "第 3 步：每个 token 得到 Q、K、V",
    "walk_roles": "Q 负责打分，K 等着被打分，V 是被取走的内容。",
    "walk_matrices": "第 0 层乘以三个训练好的矩阵。它们的差别只在训练得到的数字：",
    "walk_vectors": "{token} 得到：",
    "walk_turned": "相乘之前：这一行先归一化。相乘之后：Q 和 K 按位置旋转（RoPE），V 不旋转。",
    "walk_turned_normed": (
        "相乘之前：这一行先归一化。相乘之后：Q 和 K 逐头归一化（Qwen3），再按位置旋转（RoPE），V 不旋转。"
    ),
    "walk_groups": "每 {group} 个 Q 头共用 {kv_heads} 个 KV 头中的一个：分组查询注意力（GQA）。",
    "walk_same": (
        "{token} 出现在位置 {first} 和 {again}。取的是同一行，所以 V 相同（相差 {stayed}）；"
        "位置让 K 不同，最多相差 {moved}。"
    ),
    "walk_step_4": "第 4 步：Q 给每个 K 打分，再按占比从每个 V 中取内容",
    "walk_scores": (
        "第 0 层、0 号头，{token} 回头看。点积先除以 √D = {divisor}；softmax 把分数变成加起来为 100 % "
        "的占比。"
    ),
    "walk_sum": "= 取得",
    "walk_heads": "每个头看的地方不同。{token} 在各头的占比：",
    "walk_mask": "每个 token 都同时做了这件事。因果掩码遮住后面的内容（0 号头）：",
    "walk_step_5": "第 5 步：各自消化，即 FFN",
    "walk_feed_forward": (
        "各头的输出拼在一起，经 o_proj 混合，加回输入；再过两个矩阵、SiLU、第三个矩阵，再加一次。"
    ),
    "walk_step_6": "第 6 步：最后一层的输出变成猜测",
    "walk_head": (
        "再归一化一次，乘以 {rows} × {columns} 的矩阵：{token} 之后每个可能的 token 得到一个 logit。"
    ),
    "walk_head_tied": (
        "再归一化一次，再用一次嵌入表（{rows} × {columns}）：{token} 之后每个可能的 token 得到一个 logit。"
    ),
    "walk_layers": "{token} 这一个 token 走过各层",
    "walk_layers_key": "每层都有它自己的 K 和 V：输入不同，矩阵也不同。所以缓存要为每一层各存一份。",
    "walk_layers_output": (
        "输出只传给下一层，用完即释放。相似度：与这个 token 自己那一行的余弦。猜测：如果输出头直接接在"
        "这一层之后，会猜什么。"
    ),
    "walk_generation": "带缓存的生成：{said}",
    "walk_bytes": "第 1 步一次处理 {prompt} 个 token 的提示（预填充）；之后每步只处理前一个 token（解码）。",
    "walk_equal": (
        "fp32 数组实占的字节与 'kvgauge size --kv-dtype fp32' 一字节不差：每 token {per_token} B，"
        "最后 {tokens} 个 token。"
        "读取量随之增长：注意力要读缓存中的全部内容。"
    ),
    "walk_unequal": "数组实占的字节与 'kvgauge size' 不同：每 token {per_token} B。",
    "walk_work_title": "省了什么",
    "walk_saved": (
        "T = {tokens}：用缓存时每层算了 {rows} 组 K、V，不用则算 {rows_without} 组。"
        "若从第一个字起逐个处理，会是 T (T + 1) / 2 = {from_one} 组。"
    ),
    "walk_not_constant": "每步的工作量并不恒定：K 和 V 只算一组，但打分和读取要覆盖全部历史。",
    "walk_overhead": "模型这么小，时间里大多是固定开销。",
    "walk_other_tokens": "两种方式选出了不同的 token：数字的末几位不同，而两个 token 的概率几乎相等。",
    "walk_stays_title": "为什么 K、V 能存，Q 和分数不能",
    "walk_stays": (
        "从第一步到最后一步，缓存中的数字变化了 {moved}；用整段文本重新计算，最多相差 {recomputed}。"
        "后来的 token 不会改变先前的 K 和 V。"
    ),
    "walk_fresh": "Q 属于最新的 token，分数属于它的 Q：每步都是新的（第 0 层、0 号头）。",
    # the pipeline
    "help.verb.learn pipeline": (
        "用一张 SVG 画出模型从文字到下一个 token：形状、字节，以及缓存、分块、分页各在哪里起作用。"
    ),
    "pipeline_title": "{model}：{tokens} 个 token 之后的一步解码",
    "pipeline_about": ("从文字经过各层到下一个 token；缓存画在读取它的打分旁边。"),
    "pipeline_layers": "{count} 层之一",
    "pipeline_tokens": "分词器：文字 → 编号",
    "pipeline_vocabulary": "{count} 条",
    "pipeline_embedding": "嵌入：编号 → 一行",
    "pipeline_norm": "RMSNorm",
    "pipeline_query": "Q",
    "pipeline_key": "K",
    "pipeline_value": "V",
    "pipeline_rope": "Q、K：RoPE",
    "pipeline_flash": "FlashAttention：在片上分块计算，从不整块放进显存",
    "pipeline_scores": "打分：Q × 至今每个 token 的 K",
    "pipeline_weights": "softmax",
    "pipeline_head_outputs": "权重 × V，逐头",
    "pipeline_output": "各头拼接 × W_O",
    "pipeline_add": "+ 输入",
    "pipeline_cache": "KV 缓存：追加、读取、保留",
    "pipeline_pages": "PagedAttention：{count} 页，每页 {size}",
    "pipeline_sums": "本层 {layer}，全部 {all}",
    "pipeline_read": "读取",
    "pipeline_gate": "gate",
    "pipeline_up": "up",
    "pipeline_middle": "SiLU(gate) × up",
    "pipeline_down": "down",
    "pipeline_head": "LM head：每条一个分数",
    "pipeline_next": "下一个 token",
    "pipeline_next_how": "取最高，或抽样",
    "pipeline_loop": "解码：再来一次，多一行",
    # exercises
    "help.verb.learn exercises": "各章的练习题；答案由程序库核对。",
    "help.option.answer": "你的答案：一个数，或 4.5GiB 这样的大小。",
    "exercises_how": "kvgauge learn exercises l2-batch --answer 18GiB 核对答案。",
    "exercise_how": "kvgauge learn exercises {id} --answer VALUE",
    "exercise_right": "正确：{value}",
    "exercise_wrong": "不对：应为 {value}",
    "exercise_why": "原因：{why}",
}
