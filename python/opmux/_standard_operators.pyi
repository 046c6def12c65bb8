"""The standard operators for type checkers, made by tools/gen_operator_stubs.py."""

from typing import Any, Literal, Protocol, TypeVar

from ._core import Constant

class Tensor(Protocol):
    """Whatever can be read as a tensor: of numpy, torch, jax, cupy, or anything with DLPack."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __dlpack_device__(self) -> Any: ...

T = TypeVar("T", bound=Tensor)

class StandardOperators:
    """Operators by name. Others, defined by programs and plugins, are attributes too."""

    def attention(
        self,
        q: T,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None = None,
        causal: bool = False,
        scale: float | None = None,
        window: int = 0,
        sink: Tensor | None = None,
        softcap: float = 0,
        *,
        out: Tensor | None = None,
    ) -> T:
        """Weighs values by the softmax of scaled products of queries and keys.

        attention(out Tensor y[B, S, HQ, DV], Tensor q[B, S, HQ, D], Tensor k[B, T, HKV, D], Tensor
            v[B, T, HKV, DV], Tensor? mask[*], bool causal = false, float? scale, int window = 0,
            Tensor? sink[HQ], float softcap = 0) where HQ % HKV == 0 && window >= 0
        """

    def embedding(
        self,
        weight: Tensor,
        ids: Tensor,
        *,
        out: Tensor | None = None,
    ) -> Any:
        """Copies for each id the row of the table that it names.

        embedding(out Tensor y[..., H], Tensor weight[V, H], Tensor ids[...])
        """

    def fused_add_rms_norm(
        self,
        x: Tensor,
        residual: Tensor,
        weight: Tensor | None = None,
        eps: float = 1e-06,
        round_before_weight: bool = False,
    ) -> None:
        """Adds x to the residual, then writes the root-mean-square norm of that sum to x.

        fused_add_rms_norm(inout Tensor x[..., H], inout Tensor residual[..., H], Tensor? weight[H],
            float eps = 1e-06, bool round_before_weight = false)
        """

    def fused_moe(
        self,
        x: T,
        w1: Tensor | Constant,
        w2: Tensor | Constant,
        topk_weights: Tensor,
        topk_ids: Tensor,
        activation: Literal["silu", "gelu", "gelu_tanh"] = "silu",
        *,
        out: Tensor | None = None,
    ) -> T:
        """Sums for each token the gated feed-forward networks of its experts, each times its
        weight.

        fused_moe(out Tensor y[..., H], Tensor x[..., H], const Tensor w1[E, I2, H], const Tensor
            w2[E, H, I], Tensor topk_weights[..., K], Tensor topk_ids[..., K], enum{silu, gelu,
            gelu_tanh} activation = silu) where I2 == 2 * I
        """

    def gelu_and_mul(
        self,
        x: T,
        approximate: Literal["none", "tanh"] = "none",
        *,
        out: Tensor | None = None,
    ) -> T:
        """Multiplies the GELU of the first half of each row by its second half.

        gelu_and_mul(out Tensor y[..., H], Tensor x[..., H2], enum{none, tanh} approximate = none)
            where H2 == 2 * H
        """

    def layer_norm(
        self,
        x: T,
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        eps: float = 1e-05,
        *,
        out: Tensor | None = None,
    ) -> T:
        """Brings each row to mean zero and variance one, then applies an optional weight and bias.

        layer_norm(out Tensor y[..., H], Tensor x[..., H], Tensor? weight[H], Tensor? bias[H], float
            eps = 1e-05)
        """

    def linear(
        self,
        x: T,
        weight: Tensor | Constant,
        bias: Tensor | None = None,
        *,
        out: Tensor | None = None,
    ) -> T:
        """Multiplies each row by a weight of one row per output, then adds an optional bias.

        linear(out Tensor y[..., N], Tensor x[..., K], const Tensor weight[N, K], Tensor? bias[N])
        """

    def linear_w4a16(
        self,
        x: T,
        weight: Tensor | Constant,
        scale: Tensor | Constant,
        zero_point: Tensor | Constant | None = None,
        bias: Tensor | None = None,
        *,
        out: Tensor | None = None,
    ) -> T:
        """Multiplies each row by a weight of 4-bit integers that have a scale for each group of
        inputs.

        linear_w4a16(out Tensor y[..., N], Tensor x[..., K], const Tensor weight[N, KP], const
            Tensor scale[N, G], const Tensor? zero_point[N, G], Tensor? bias[N]) where K == 2 * KP
            && K % G == 0
        """

    def linear_w8a8(
        self,
        x: T,
        weight: Tensor | Constant,
        weight_scale: Tensor | Constant,
        x_scale: Tensor | None = None,
        bias: Tensor | None = None,
        *,
        out: Tensor | None = None,
    ) -> T:
        """Multiplies rows of 8-bit integers, quantized here if they are floats, by a weight of
        8-bit ones.

        linear_w8a8(out Tensor y[..., N], Tensor x[..., K], const Tensor weight[N, K], const Tensor
            weight_scale[N], Tensor? x_scale[...], Tensor? bias[N]) where K < 131072
        """

    def matmul(
        self,
        a: T,
        b: Tensor,
        *,
        out: Tensor | None = None,
    ) -> T:
        """Multiplies matrices, one pair for each of the leading dimensions.

        matmul(out Tensor y[..., M, N], Tensor a[..., M, K], Tensor b[..., K, N])
        """

    def paged_attention(
        self,
        q: T,
        k_cache: Tensor,
        v_cache: Tensor,
        block_table: Tensor,
        seq_lens: Tensor,
        query_start: Tensor,
        causal: bool = True,
        scale: float | None = None,
        window: int = 0,
        sink: Tensor | None = None,
        softcap: float = 0,
        *,
        out: Tensor | None = None,
    ) -> T:
        """Attention of sequences of different lengths whose keys and values lie in the blocks of a
        cache.

        paged_attention(out Tensor y[T, HQ, DV], Tensor q[T, HQ, D], Tensor k_cache[NB, BS, HKV, D],
            Tensor v_cache[NB, BS, HKV, DV], Tensor block_table[B, MB], Tensor seq_lens[B], Tensor
            query_start[B1], bool causal = true, float? scale, int window = 0, Tensor? sink[HQ],
            float softcap = 0) where B1 == B + 1 && HQ % HKV == 0 && window >= 0
        """

    def reshape_and_cache(
        self,
        k_cache: Tensor,
        v_cache: Tensor,
        k: Tensor,
        v: Tensor,
        slots: Tensor,
    ) -> None:
        """Writes the key and the value of each token into its slot of a paged cache.

        reshape_and_cache(inout Tensor k_cache[NB, BS, HKV, D], inout Tensor v_cache[NB, BS, HKV,
            DV], Tensor k[T, HKV, D], Tensor v[T, HKV, DV], Tensor slots[T])
        """

    def rms_norm(
        self,
        x: T,
        weight: Tensor | None = None,
        eps: float = 1e-06,
        round_before_weight: bool = False,
        *,
        out: Tensor | None = None,
    ) -> T:
        """Scales each row by the reciprocal of its root mean square, then by an optional weight.

        rms_norm(out Tensor y[..., H], Tensor x[..., H], Tensor? weight[H], float eps = 1e-06, bool
            round_before_weight = false)
        """

    def rotary_embedding(
        self,
        q: Tensor,
        k: Tensor | None,
        positions: Tensor,
        cos_sin: Tensor,
        style: Literal["neox", "gptj"] = "neox",
    ) -> None:
        """Rotates the first R elements of each query and key head by the angles of its position.

        rotary_embedding(inout Tensor q[..., HQ, D], inout Tensor? k[..., HKV, D], Tensor
            positions[...], Tensor cos_sin[P, R], enum{neox, gptj} style = neox) where R <= D && R %
            2 == 0
        """

    def sample(
        self,
        logits: Tensor,
        temperature: Tensor | None = None,
        top_k: Tensor | None = None,
        top_p: Tensor | None = None,
        seed: Tensor | None = None,
        offset: Tensor | None = None,
        *,
        out: Tensor | None = None,
    ) -> Any:
        """Draws for each row one token by its logits, or takes the largest.

        sample(out Tensor tokens[...], Tensor logits[..., V], Tensor? temperature[...], Tensor?
            top_k[...], Tensor? top_p[...], Tensor? seed[...], Tensor? offset[...]) where V <
            16777216
        """

    def silu_and_mul(
        self,
        x: T,
        *,
        out: Tensor | None = None,
    ) -> T:
        """Multiplies the SiLU of the first half of each row by its second half.

        silu_and_mul(out Tensor y[..., H], Tensor x[..., H2]) where H2 == 2 * H
        """

    def softmax(
        self,
        x: T,
        scale: float = 1,
        *,
        out: Tensor | None = None,
    ) -> T:
        """Turns each row, times scale, into weights that are positive and sum to one.

        softmax(out Tensor y[..., H], Tensor x[..., H], float scale = 1)
        """

    def topk_softmax(
        self,
        logits: Tensor,
        renormalize: bool = False,
        *,
        out: tuple[Tensor, Tensor] | None = None,
    ) -> tuple[Any, Any]:
        """Gives for each row the K largest of its softmax weights and where they stand.

        topk_softmax(out Tensor weights[..., K], out Tensor ids[..., K], Tensor logits[..., E], bool
            renormalize = false) where K <= E
        """

    def __getattr__(self, name: str) -> Any: ...
