"""The papers behind the catalogue."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Reference:
    """A paper, as a bibliography needs it.

    Args:
        key: Its name in `REFERENCES` and in BibTeX.
        authors: Full names, in the paper's order.
        title: The full title.
        venue: Where it appeared, abbreviated as the field does; "" if it has not.
        year: When; 0 if it has not appeared.
        url: Where to read it; "" if no address is known for certain.
    """

    key: str
    authors: tuple[str, ...]
    title: str
    venue: str
    year: int
    url: str = ""

    @property
    def short(self) -> str:
        """First author and year, as "Zhang 2018"; all surnames where there is no year."""
        surnames = [author.split()[-1] for author in self.authors]
        return f"{surnames[0]} {self.year}" if self.year else " and ".join(surnames)

    @property
    def text(self) -> str:
        """One line: authors, title, venue and year."""
        *others, last = self.authors
        names = f"{', '.join(others)} and {last}" if others else last
        place = f"{self.venue} {self.year}" if self.venue else "Manuscript"
        return f"{names}. {self.title.rstrip('.')}{'' if self.title[-1] in '?!' else '.'} {place}."

    @property
    def bibtex(self) -> str:
        """The entry for a BibTeX file."""
        kind, place = ("inproceedings", "booktitle") if self.venue else ("unpublished", "note")
        if "Journal" in self.venue or "Review" in self.venue:
            kind, place = "article", "journal"
        fields = {
            "title": f"{{{_latex(self.title)}}}",
            "author": _latex(" and ".join(_inverted(author) for author in self.authors)),
            place: _VENUES.get(self.venue, self.venue) or "Manuscript",
        }
        if self.year:
            fields["year"] = str(self.year)
        if self.url:
            fields["url"] = self.url
        lines = [f"  {name:<9} = {{{value}}}," for name, value in fields.items()]
        return "\n".join([f"@{kind}{{{self.key},", *lines, "}"])


_VENUES = {
    "AAAI": "AAAI Conference on Artificial Intelligence",
    "CVPR": "IEEE/CVF Conference on Computer Vision and Pattern Recognition",
    "ICCV": "IEEE/CVF International Conference on Computer Vision",
    "ICLR": "International Conference on Learning Representations",
    "ICML": "International Conference on Machine Learning",
    "IJCAI": "International Joint Conference on Artificial Intelligence",
    "NeurIPS": "Advances in Neural Information Processing Systems",
}
_LATEX = {"á": r"{\'a}", "ε": r"$\varepsilon$"}


def _inverted(author: str) -> str:
    *given, surname = author.split()
    return f"{surname}, {' '.join(given)}"


def _latex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)


def _reference(
    key: str, authors: str, title: str, venue: str = "", year: int = 0, url: str = ""
) -> Reference:
    return Reference(key, tuple(authors.split(", ")), title, venue, year, url)


_ARXIV = "https://arxiv.org/abs/"

_ALL = (
    _reference(
        "lin2017focal",
        "Tsung-Yi Lin, Priya Goyal, Ross Girshick, Kaiming He, Piotr Dollár",
        "Focal Loss for Dense Object Detection",
        "ICCV",
        2017,
        _ARXIV + "1708.02002",
    ),
    _reference(
        "ghosh2017mae",
        "Aritra Ghosh, Himanshu Kumar, P. S. Sastry",
        "Robust Loss Functions under Label Noise for Deep Neural Networks",
        "AAAI",
        2017,
        _ARXIV + "1712.09482",
    ),
    _reference(
        "brier1950",
        "Glenn W. Brier",
        "Verification of Forecasts Expressed in Terms of Probability",
        "Monthly Weather Review",
        1950,
    ),
    _reference(
        "wang2019sce",
        "Yisen Wang, Xingjun Ma, Zaiyi Chen, Yuan Luo, Jinfeng Yi, James Bailey",
        "Symmetric Cross Entropy for Robust Learning with Noisy Labels",
        "ICCV",
        2019,
        _ARXIV + "1908.06112",
    ),
    _reference(
        "zhang2018gce",
        "Zhilu Zhang, Mert R. Sabuncu",
        "Generalized Cross Entropy Loss for Training Deep Neural Networks with Noisy Labels",
        "NeurIPS",
        2018,
        _ARXIV + "1805.07836",
    ),
    _reference(
        "ma2020apl",
        "Xingjun Ma, Hanxun Huang, Yisen Wang, Simone Romano, Sarah Erfani, James Bailey",
        "Normalized Loss Functions for Deep Learning with Noisy Labels",
        "ICML",
        2020,
        _ARXIV + "2006.13554",
    ),
    _reference(
        "zhou2021alf",
        "Xiong Zhou, Xianming Liu, Junjun Jiang, Xin Gao, Xiangyang Ji",
        "Asymmetric Loss Functions for Learning with Noisy Labels",
        "ICML",
        2021,
        _ARXIV + "2106.03110",
    ),
    _reference(
        "ye2023anl",
        "Xichen Ye, Xiaoqiang Li, Songmin Dai, Tong Liu, Yan Sun, Weiqin Tong",
        "Active Negative Loss Functions for Learning with Noisy Labels",
        "NeurIPS",
        2023,
        "https://papers.neurips.cc/paper_files/paper/2023/hash/"
        "15f4cefb0e143c7ad9d40e879b0a9d0c-Abstract-Conference.html",
    ),
    _reference(
        "wang2025jal",
        "Jialiang Wang, Xianming Liu, Xiong Zhou, Gangfeng Hu, Deming Zhai, Junjun Jiang, "
        "Xiangyang Ji",
        "Joint Asymmetric Loss for Learning with Noisy Labels",
        "ICCV",
        2025,
        _ARXIV + "2507.17692",
    ),
    _reference(
        "wei2023logitclip",
        "Hongxin Wei, Huiping Zhuang, Renchunzi Xie, Lei Feng, Gang Niu, Bo An, Yixuan Li",
        "Mitigating Memorization of Noisy Labels by Clipping the Model Prediction",
        "ICML",
        2023,
        _ARXIV + "2212.04055",
    ),
    _reference(
        "wang2024epssoftmax",
        "Jialiang Wang, Xiong Zhou, Deming Zhai, Junjun Jiang, Xiangyang Ji, Xianming Liu",
        "ε-Softmax: Approximating One-Hot Vectors for Mitigating Label Noise",
        "NeurIPS",
        2024,
        _ARXIV + "2508.02387",
    ),
    _reference(
        "zhu2023ldr",
        "Dixian Zhu, Yiming Ying, Tianbao Yang",
        "Label Distributionally Robust Losses for Multi-class Classification: Consistency, "
        "Robustness and Adaptivity",
        "ICML",
        2023,
        _ARXIV + "2112.14869",
    ),
    _reference(
        "feng2020taylor",
        "Lei Feng, Senlin Shu, Zhuoyi Lin, Fengmao Lv, Li Li, Bo An",
        "Can Cross Entropy Loss Be Robust to Label Noise?",
        "IJCAI",
        2020,
        "https://www.ijcai.org/proceedings/2020/305",
    ),
    _reference(
        "englesson2021gjs",
        "Erik Englesson, Hossein Azizpour",
        "Generalized Jensen-Shannon Divergence Loss for Learning with Noisy Labels",
        "NeurIPS",
        2021,
        _ARXIV + "2105.04522",
    ),
    _reference(
        "zhou2021sr",
        "Xiong Zhou, Xianming Liu, Chenyang Wang, Deming Zhai, Junjun Jiang, Xiangyang Ji",
        "Learning with Noisy Labels via Sparse Regularization",
        "ICCV",
        2021,
        _ARXIV + "2108.00192",
    ),
    _reference(
        "menon2020phuber",
        "Aditya Krishna Menon, Ankit Singh Rawat, Sashank J. Reddi, Sanjiv Kumar",
        "Can gradient clipping mitigate label noise?",
        "ICLR",
        2020,
        "https://openreview.net/forum?id=rklB76EKPr",
    ),
    _reference(
        "szegedy2016lsr",
        "Christian Szegedy, Vincent Vanhoucke, Sergey Ioffe, Jonathon Shlens, Zbigniew Wojna",
        "Rethinking the Inception Architecture for Computer Vision",
        "CVPR",
        2016,
        _ARXIV + "1512.00567",
    ),
    _reference(
        "wei2022nls",
        "Jiaheng Wei, Hangyu Liu, Tongliang Liu, Gang Niu, Masashi Sugiyama, Yang Liu",
        "To Smooth or Not? When Label Smoothing Meets Noisy Labels",
        "ICML",
        2022,
        _ARXIV + "2106.04149",
    ),
    _reference(
        "kim2019nlnl",
        "Youngdong Kim, Junho Yim, Juseung Yun, Junmo Kim",
        "NLNL: Negative Learning for Noisy Labels",
        "ICCV",
        2019,
        _ARXIV + "1908.07387",
    ),
    _reference(
        "kim2021jnpl",
        "Youngdong Kim, Juseung Yun, Hyounguk Shon, Junmo Kim",
        "Joint Negative and Positive Learning for Noisy Labels",
        "CVPR",
        2021,
        _ARXIV + "2104.06574",
    ),
    _reference(
        "patrini2017correction",
        "Giorgio Patrini, Alessandro Rozza, Aditya Krishna Menon, Richard Nock, Lizhen Qu",
        "Making Deep Neural Networks Robust to Label Noise: A Loss Correction Approach",
        "CVPR",
        2017,
        _ARXIV + "1609.03683",
    ),
    _reference(
        "vsl2025",
        "Jialiang Wang, Xiong Zhou, Xianming Liu, Gangfeng Hu, Deming Zhai, Junjun Jiang, "
        "Haoliang Li",
        "Variation-Bounded Loss for Noise-Tolerant Learning",
        "AAAI",
        2026,
        _ARXIV + "2511.12143",
    ),
    _reference(
        "good1952",
        "Irving John Good",
        "Rational Decisions",
        "Journal of the Royal Statistical Society, Series B",
        1952,
    ),
    _reference(
        "paper",
        "Peng Hu, Jianwei Ma",
        "Robust Losses from Univariate Base Functions for Noisy-Label Learning",
    ),
)

REFERENCES: dict[str, Reference] = {reference.key: reference for reference in _ALL}
"""All papers; the catalogue lists losses in this order."""

CONSTRUCTION_REFERENCES: dict[str, str] = {
    "TargetSeparation": "paper",
    "BinaryReduction": "paper",
    "LogitClip": "wei2023logitclip",
    "EpsSoftmax": "wang2024epssoftmax",
    "Sharpened": "zhou2021sr",
    "ForwardCorrection": "patrini2017correction",
    "BackwardCorrection": "patrini2017correction",
}
