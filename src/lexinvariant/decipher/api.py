"""What `lexinvariant.load` gives: a model that scores, generates and deciphers.

A model knows nothing of solvers (imports point one way), so deciphering is added here, a floor above.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lexinvariant.decipher.alphabet import Alphabet, split_symbols
from lexinvariant.model import api
from lexinvariant.model.weights import BUNDLED

if TYPE_CHECKING:
    from lexinvariant.decipher.solve import Reading


class Model(api.Model):
    """A loaded model."""

    def decipher(
        self,
        text: str | Sequence[str],
        cribs: Mapping[str, str] | None = None,
        *,
        crib_text: str | None = None,
        alphabet: Alphabet = "auto",
        unspaced: bool = False,
        top: int = 3,
    ) -> Reading:
        """The best reading of a ciphertext; `cribs` maps cipher symbols to what they are known to stand for, and
        `crib_text` is the known beginning of the plaintext.
        """
        from lexinvariant.decipher.solve import Solver  # who only scores need not wait for it

        symbols = split_symbols(text) if isinstance(text, str) else text
        return Solver(self).read(
            [symbols], cribs=cribs, crib_text=crib_text, alphabet=alphabet, unspaced=unspaced, top=top
        )[0]


def load(place: str | Path = BUNDLED) -> Model:
    """The model that comes with the package, one in a folder that `lexinvariant export` wrote, or one on the Hugging
    Face Hub by its name.
    """
    model = api.load(place)
    return Model(model.config, model.params, model.vocab)
