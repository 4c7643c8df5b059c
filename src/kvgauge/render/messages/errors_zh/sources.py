"""What a hub, the network or a name refuses."""

from __future__ import annotations

from collections.abc import Mapping

TABLE: Mapping[str, str] = {
    # names
    "MODEL is empty": "MODEL 是空的",
    "give a model id, a config.json, a folder or -": "请给出模型名、config.json、文件夹或 -",
    "--revision {0} is of a model on the hub, and {1} is none": (
        "--revision {0} 只用于模型库中的模型，而 {1} 不是"
    ),
    "leave it out": "请去掉它",
    "did you mean {names+}? Else {step}": "是否指 {names+}？否则{step}",
    "'kvgauge models {0}' lists names like it. Else {step}": (
        "'kvgauge models {0}' 列出相近的名称。否则{step}"
    ),
    "--refresh asks the hub, and --offline keeps off the network": (
        "--refresh 要查询模型库，--offline 却不用网络"
    ),
    "leave one of them out": "请去掉其中一个",
    "{0} is no address of a model on a hub": "{0} 不是模型库中模型的地址",
    "huggingface.co, hf.co, modelscope.cn and the host of HF_ENDPOINT are known, as org/name": (
        "已知 huggingface.co、hf.co、modelscope.cn 与 HF_ENDPOINT 的主机，写作 org/name"
    ),
    "there is no file {0}": "没有文件 {0}",
    "check the path": "请检查路径",
    "{0} is not in the shipped catalogue, and a name on the hub is org/name": (
        "内置目录中没有 {0}；模型库中的名称须写作 org/name"
    ),
    "give a config.json or a folder that holds one": "请给出 config.json 或含有它的文件夹",
    "{0} is no name of a revision": "{0} 不是版本名",
    "give a branch, a tag or a commit": "请给出分支、标签或提交",
    "{0} is no name of a GGUF file": "{0} 不是 GGUF 文件名",
    "give it as {0}:FILE.gguf": "请写作 {0}:FILE.gguf",
    # offline
    "{what?} is on the hub only, not in {place}, and {0} keeps off the network": (
        "{what?} 只在模型库中，{place}没有；{0} 又不用网络"
    ),
    "{what?} is not in the shipped catalogue nor in {place}, and {0} keeps off the network": (
        "内置目录与{place}中都没有 {what?}；{0} 又不用网络"
    ),
    "revision {0} of {1}": "{1} 的版本 {0}",
    "the file {0} of {1}": "{1} 的文件 {0}",
    "the local hub cache": "本地模型库缓存",
    "any local place": "本机",
    "{step}, or allow the network": "{step}，或允许使用网络",
    "leave it out to use the shipped config of {0}, or allow the network": (
        "请去掉它，以使用 {0} 的内置配置，或允许使用网络"
    ),
    # the hub's answers
    "{0} is gated on {site?}": "{0} 在 {site?} 上需要授权",
    "accept its licence at {0}, {step}; or give its config.json": (
        "请在 {0} 接受许可，{step}；或给出它的 config.json"
    ),
    "the account of this token has no access yet": "此令牌的账号尚无权访问",
    "then {step}": "然后{step}",
    "log in with 'hf auth login' or set HF_TOKEN": "用 'hf auth login' 登录，或设置 HF_TOKEN",
    "{site?} does not let this token read {0}": "{site?} 不允许此令牌读取 {0}",
    "check what the token may read and what the organisation allows, or give its config.json": (
        "请检查令牌的读取权限与组织的限制，或给出它的 config.json"
    ),
    "{site?} does not accept the token": "{site?} 不接受该令牌",
    "log in again with 'hf auth login', set a valid HF_TOKEN, or unset it": (
        "请用 'hf auth login' 重新登录，或设置有效的 HF_TOKEN，或取消它"
    ),
    "{0} is disabled by the hub ({site?})": "{0} 已被模型库停用（{site?}）",
    "give its config.json": "请给出它的 config.json",
    "{0} does not exist ({site?})": "{0} 不存在（{site?}）",
    "{0} does not exist or is private ({site?})": "{0} 不存在，或是私有的（{site?}）",
    "{step}; or give a config.json": "{step}；或给出 config.json",
    "this token may not see it": "可能是此令牌无权查看",
    "if it is private, {step}": "若是私有的，请{step}",
    "if it is private, set MODELSCOPE_API_TOKEN; or give a config.json": (
        "若是私有的，请设置 MODELSCOPE_API_TOKEN；或给出 config.json"
    ),
    "give a config.json": "请给出 config.json",
    "{site?} does not hand out {0}": "{site?} 不提供 {0}",
    "ask for access at {0} and set MODELSCOPE_API_TOKEN": "请在 {0} 申请访问，并设置 MODELSCOPE_API_TOKEN",
    "{0} has no revision {1} on {site?}": "{0} 在 {site?} 上没有版本 {1}",
    "leave it out for the default branch, or look up its branches, tags and commits": (
        "请去掉它以使用默认分支，或查看有哪些分支、标签与提交"
    ),
    "{0} holds no config.json on {site?}": "{0} 在 {site?} 上没有 config.json",
    "{0} holds no {1} on {site?}": "{0} 在 {site?} 上没有 {1}",
    "it holds GGUF files: try {names+}": "其中有 GGUF 文件：可试 {names+}",
    "it holds an adapter: give the model that it was trained on": "其中是适配器：请给出训练它所用的模型",
    "it holds {names+}; give the config.json of the model that it belongs to": (
        "其中有 {names+}；请给出它所属模型的 config.json"
    ),
    "give the config.json of the model that it belongs to": "请给出它所属模型的 config.json",
    "it holds {names+}": "其中有 {names+}",
    "look up its list of files": "请查看它的文件列表",
    # the network
    "{site?}: {reason}": "{site?}：{reason}",
    "the mirror {0} ({1})": "镜像 {0}（{1}）",
    "the mirror {0} ({1}): {reason}": "镜像 {0}（{1}）：{reason}",
    "{0}: the server answers {1}": "{0}：服务器返回 {1}",
    "the server answers {0}": "服务器返回 {0}",
    "the server fails ({0})": "服务器出错（{0}）",
    "too many requests (429)": "请求过多（429）",
    "try again {when}; a token raises the limit": "请{when}重试；使用令牌可提高限额",
    "try again {when}": "请{when}重试",
    "try again": "请重试",
    "later": "稍后",
    "in {0} s": "在 {0} 秒后",
    "try again; --offline uses the catalogue and the local cache alone": (
        "请重试；--offline 只用目录与本地缓存"
    ),
    "check that {0} is the address of a hub, or unset it": "请检查 {0} 是否为模型库的地址，或取消它",
    "check HF_ENDPOINT, the proxy, and whether the network wants a log-in": (
        "请检查 HF_ENDPOINT、代理，以及网络是否要求登录"
    ),
    "it does not answer as a hub does (no commit)": "它的应答不像模型库（没有提交号）",
    "it does not answer as ModelScope does": "它的应答不像 ModelScope",
    "it redirects more than {0} times": "重定向超过 {0} 次",
    "it redirects to something that is no web address": "它重定向到的不是网址",
    "it redirects to {0} without encryption": "它重定向到 {0}，且不加密",
    "{0} redirects elsewhere, which only the hub itself may": "{0} 重定向到别处，而只有模型库自己可以这样做",
    "{0} of {1} is larger than {2} MiB": "{1} 上的 {0} 大于 {2} MiB",
    "a config.json is a few KiB; name another model or revision": (
        "config.json 只有几 KiB；请换一个模型或版本"
    ),
    "{0} ends after {1} of {2} bytes": "{0} 只收到 {2} 字节中的 {1} 字节",
    "{0} is no plain web address": "{0} 不是普通的网址",
    "HF_ENDPOINT is no plain web address": "HF_ENDPOINT 不是普通的网址",
    "for example HF_ENDPOINT=https://hf-mirror.com, or unset it": (
        "例如 HF_ENDPOINT=https://hf-mirror.com，或取消它"
    ),
    "for example {0}": "例如 {0}",
    "no answer of {where?} within {0} s": "{where?} 在 {0} 秒内没有应答",
    "no complete answer of {where?} in time": "未能及时收到 {where?} 的完整应答",
    "check the network; HF_ENDPOINT names a mirror, HTTPS_PROXY a proxy; --offline does without": (
        "请检查网络；HF_ENDPOINT 可指定镜像，HTTPS_PROXY 可指定代理；--offline 不用网络"
    ),
    "the certificate of {where?} is not trusted": "{where?} 的证书不受信任",
    "check the clock and the proxy; SSL_CERT_FILE names further certificates": (
        "请检查时钟与代理；SSL_CERT_FILE 可指定更多证书"
    ),
    "no TLS connection with {where?}": "无法与 {where?} 建立 TLS 连接",
    "check that the address speaks https": "请检查该地址是否支持 https",
    "{where?} is not found (DNS)": "找不到 {where?}（DNS）",
    "{where?} cut the answer off": "{where?} 中断了应答",
    "{where?} refuses the connection": "{where?} 拒绝连接",
    "{where?} does not answer in HTTP": "{where?} 的应答不是 HTTP",
    "{where?} can't be reached": "无法连接 {where?}",
    "{where?} is not opened by the proxy": "代理没有接通 {where?}",
    "{0} through the proxy {1}": "{0}（经代理 {1}）",
    "check HTTP_PROXY, HTTPS_PROXY and NO_PROXY": "请检查 HTTP_PROXY、HTTPS_PROXY 与 NO_PROXY",
    "no request can be made of {where?}": "无法向 {where?} 发出请求",
    "check the address and the token": "请检查地址与令牌",
    "an address that is none": "无效的地址",
    "SOCKS proxies are not supported": "不支持 SOCKS 代理",
    "name an HTTP proxy in HTTPS_PROXY": "请在 HTTPS_PROXY 中指定 HTTP 代理",
    # files read by ranges
    "it has {0} bytes, and the hub says {1}": "它有 {0} 字节，而模型库说是 {1}",
    "the server answers another range than was asked for": "服务器返回的范围不是所请求的",
    "its ranges do not fit together": "各段范围接不上",
    "its header takes more than {0} requests or {1} MiB": "读取文件头需要超过 {0} 次请求或 {1} MiB",
    "its header takes more than {0} s": "读取文件头需要超过 {0} 秒",
    "the server does not say how large it is": "服务器没有说明它的大小",
    "the server does not answer ranges": "服务器不支持按范围读取",
    "it changed while it was read": "读取期间文件发生了变化",
    "the answer ends after {0} of {1} bytes": "应答只有 {1} 字节中的 {0} 字节",
}
