"""Settings: from the environment, `.env`, or `haru.toml` in the app's folder, in this order; the command line wins.

HARU_MODEL              gemini:NAME, openai:NAME, offline, cassette:FILE
HARU_FALLBACK_MODELS    the models that stand in for it where it fails, in this order, with commas between them
HARU_ANSWER_MODEL       the model that rewrites its answers
HARU_CASSETTE           a file that all traffic with the model is recorded to
HARU_DATABASE_URL       sqlite:///PATH, memory: (a relative PATH is one of the app's folder where it stands in a file
                        there, else of the current folder)
HARU_DATABASE_TIMEOUT_S seconds to wait while another process holds the database
HARU_LIMITS__MAX_STEPS  and every other limit of `Limits`
GEMINI_API_KEY, GOOGLE_API_KEY, GOOGLE_GEMINI_BASE_URL, HARU_GEMINI_API_VERSION
OPENAI_API_KEY, OPENAI_BASE_URL
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeVar

from pydantic import AliasChoices, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)
from pydantic_settings import (
    SettingsError as Unparsed,
)

from haru_fsm.clock import SystemClock
from haru_fsm.errors import SettingsError
from haru_fsm.foreign import in_words
from haru_fsm.limits import Limits
from haru_fsm.models import Model
from haru_fsm.models.choosing import Access, Choice
from haru_fsm.setting_errors import named_in_file, told, unknown_in_file
from haru_fsm.stores import Store

if TYPE_CHECKING:
    from haru_fsm.app import App
    from haru_fsm.certificate import Costs

DEFAULT_GEMINI = "gemini:gemini-flash-latest"
DATABASE = "memory_store/haru.db"
SQLITE = "sqlite:///"
ENV = ".env"
_OPTIONS = re.compile(r"\?\w+=")
"""What other programs' addresses may end in."""
Figure = TypeVar("Figure", int, float)


class _Environment(EnvSettingsSource):
    """The environment."""

    def __call__(self) -> dict[str, Any]:
        return _trimmed(super().__call__())


class _Secrets(DotEnvSettingsSource):
    """`.env` in the app's folder."""

    def __call__(self) -> dict[str, Any]:
        return _beside(self.config.get("env_file"), _trimmed(super().__call__()))


class _File(TomlConfigSettingsSource):
    """`haru.toml` in the app's folder."""

    def _read_file(self, file_path: Any) -> dict[str, Any]:
        return tomllib.loads(file_path.read_text("utf-8-sig"))  # some editors on Windows put a mark before a text

    def __call__(self) -> dict[str, Any]:
        file, found = self.config.get("toml_file"), super().__call__()
        unknown = unknown_in_file(found, named_in_file(self.settings_cls.model_fields))
        if unknown is not None:
            raise SettingsError(f"{file}: {unknown}")
        return _beside(file, _trimmed(found))


def _trimmed(found: dict[str, Any]) -> dict[str, Any]:
    """What a source says, without blanks around texts: an env file of a container keeps those at the end of a line, and
    `haru.db ` is another database. A text of nothing but blanks is not said."""
    trimmed = {name: _trimmed_value(value) for name, value in found.items()}
    return {name: value for name, value in trimmed.items() if value != ""}


def _trimmed_value(value: Any) -> Any:
    if isinstance(value, dict):
        return _trimmed(value)
    return value.strip() if isinstance(value, str) else value


def _beside(file: Any, found: dict[str, Any]) -> dict[str, Any]:
    """What a file says, with relative paths taken from where that file is, wherever the command is run."""
    if not isinstance(file, Path):
        return found
    url, cassette = found.get("database_url"), found.get("cassette")
    placed = dict(found)
    if isinstance(url, str) and url.startswith(SQLITE) and len(url) > len(SQLITE):
        placed["database_url"] = f"{SQLITE}{file.parent / _path(url)}"
    if isinstance(cassette, str) and cassette:
        placed["cassette"] = str(file.parent / cassette)
    return placed


def _path(url: str) -> Path:
    """The file of an address. It is written as it is called: `%20` in it is no blank."""
    path = Path(url.removeprefix(SQLITE))
    return path.expanduser() if path.parts[:1] == ("~",) else path


class Settings(BaseSettings):
    """What a user may set. Raises SettingsError (by `for_folder`) for a value that cannot be used, naming it."""

    model_config = SettingsConfigDict(
        env_prefix="HARU_", env_nested_delimiter="__", extra="ignore", env_ignore_empty=True, populate_by_name=True
    )

    model: str | None = None
    fallback_models: Annotated[tuple[str, ...], NoDecode] = ()
    answer_model: str | None = None
    cassette: Path | None = None
    database_url: str | None = None
    database_timeout_s: float = Field(default=5.0, ge=0, le=3600)
    limits: Limits = Limits()
    gemini_api_version: str | None = None
    gemini_api_key: SecretStr | None = Field(
        default=None, validation_alias=AliasChoices("GEMINI_API_KEY", "GOOGLE_API_KEY")
    )
    gemini_base_url: str | None = Field(default=None, validation_alias="GOOGLE_GEMINI_BASE_URL")
    openai_api_key: SecretStr | None = Field(default=None, validation_alias="OPENAI_API_KEY")
    openai_base_url: str | None = Field(default=None, validation_alias="OPENAI_BASE_URL")

    @field_validator("fallback_models", mode="before")
    @classmethod
    def _split(cls, given: object) -> object:
        """A list with commas, as an environment can hold it; `haru.toml` may have a real one."""
        return [name.strip() for name in given.split(",") if name.strip()] if isinstance(given, str) else given

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings, _Environment(settings_cls), _Secrets(settings_cls), _File(settings_cls))

    @classmethod
    def for_folder(cls, folder: Path | None, **given: Any) -> Self:
        """The settings for an app's folder. `given` wins over all; a None in it counts as not given."""
        here = folder if folder is not None else Path.cwd()

        # Sources read their files from the class, and the folder is known only now: no type checker follows that base.
        class InFolder(cls):  # type: ignore[valid-type, misc]
            model_config = SettingsConfigDict(env_file=here / ENV, toml_file=here / "haru.toml")

        try:
            settings: Self = InFolder(**{name: _trimmed_value(v) for name, v in given.items() if v is not None})
        except ValidationError as error:
            raise SettingsError(told(error)) from error
        except Unparsed as error:
            raise SettingsError("HARU_LIMITS is no setting: set HARU_LIMITS__MAX_STEPS, and so on.") from error
        except tomllib.TOMLDecodeError as error:
            raise SettingsError(f"{here / 'haru.toml'} is no TOML: {error}.") from error
        except (OSError, ValueError) as error:
            raise SettingsError(f"The settings in {here} cannot be read: {in_words(error)}.") from error
        return settings

    @classmethod
    def named_in_env(cls, folder: Path) -> tuple[str, ...]:
        """The variables that `.env` in an app's folder sets."""
        return tuple(DotEnvSettingsSource(cls, env_file=folder / ENV).env_vars)

    @classmethod
    def for_app(cls, app: App) -> Self:
        """The settings for a loaded app."""
        return cls.for_folder(app.folder)

    def costs(self, limits: Limits) -> Costs:
        """What one piece of work can cost with these models, at the prices of this moment.

        A model's window is `max_input_tokens` where nobody knows it.
        """
        from haru_fsm.certificate import Costs
        from haru_fsm.models.prices import dearest

        now = SystemClock().now()
        # A price list knows what OpenAI asks, not what a server elsewhere does under the same name.
        specs = (f"elsewhere:{spec}" if self.openai_base_url and _is_openai(spec) else spec for spec in self.choice.all)
        known = [dearest(spec, at=now, window=limits.max_input_tokens) for spec in specs]
        return replace(
            Costs.of(limits),
            models=len(known),
            window_tokens=_most(each.tokens for each in known),
            usd_per_request=_most(each.usd for each in known),
            usd_per_token=_most(each.usd_per_token for each in known),
        )

    # -- what they make

    @property
    def model_spec(self) -> str:
        """`kind:name` of the model: what is set, else Gemini where there is a key, else offline."""
        return self.model or (DEFAULT_GEMINI if self.gemini_api_key else "offline")

    @property
    def choice(self) -> Choice:
        """All models that are set. A cassette plays alone: whoever stood in, or rewrote an answer, is in it."""
        if self.model_spec.startswith("cassette:"):
            return Choice(self.model_spec)
        return Choice(self.model_spec, self.fallback_models, self.answer_model)

    @property
    def _access(self) -> Access:
        return Access(
            gemini_key=_secret(self.gemini_api_key),
            gemini_base_url=self.gemini_base_url,
            gemini_api_version=self.gemini_api_version,
            openai_key=_secret(self.openai_api_key),
            openai_base_url=self.openai_base_url,
        )

    def make_model(self, app: App) -> Model:
        """The model, recorded where `cassette` names a file.

        Raises SettingsError for an unknown kind, ModelError where a key or an extra is missing, or a cassette's file
        cannot be used.
        """
        model = self.choice.make(self._access, app.limits)
        if self.cassette is None:
            return model
        if f"cassette:{self.cassette}" in self.choice.all:
            raise SettingsError(f"HARU_CASSETTE is {self.cassette}, and so is what is played. Name another file.")
        from haru_fsm.models.cassette import RecordingModel

        return RecordingModel(model, self.cassette, keys=self.secrets())

    def secrets(self) -> list[str]:
        """Every secret of these settings."""
        values = (getattr(self, name) for name in type(self).model_fields)
        return [value.get_secret_value() for value in values if isinstance(value, SecretStr)]

    def make_store(self, folder: Path | None) -> Store:
        """The store; by default a file in the app's folder. Raises SettingsError for an address of another kind."""
        url = self.database_url
        if url is None:
            from haru_fsm.stores.sqlite import SQLiteStore

            return SQLiteStore((folder or Path.cwd()) / DATABASE, busy_timeout_s=self.database_timeout_s)
        if url.partition(":")[0] == "memory":
            from haru_fsm.stores.memory import MemoryStore

            return MemoryStore()
        if _OPTIONS.search(url):
            raise SettingsError(
                f"The database address is {url!r}, and haru_fsm takes no options behind a file's name: it would be "
                "another file. Leave them out."
            )
        if url.startswith(SQLITE) and len(url) > len(SQLITE):
            from haru_fsm.stores.sqlite import SQLiteStore

            return SQLiteStore(_path(url), busy_timeout_s=self.database_timeout_s)
        raise SettingsError(
            f"The database address is {url!r}. Use sqlite:///FILE (sqlite:////absolute/FILE) or memory:."
        )


def _is_openai(spec: str) -> bool:
    return spec.startswith("openai:")


def _secret(value: SecretStr | None) -> str | None:
    return value.get_secret_value() if value is not None else None


def _most(figures: Iterable[Figure | None]) -> Figure | None:
    """The largest of these; None where one of them is not known."""
    known = list(figures)
    found = [figure for figure in known if figure is not None]
    return max(found) if len(found) == len(known) else None
