"""The server: a page, and an address for everything that it can ask."""

import mimetypes
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import lru_cache
from pathlib import Path

from fastapi import FastAPI, Request, Response
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles

from vma.fewshot import ImageMemory
from vma.serve import messages
from vma.serve.answers import Norms, Sent, imagine, read_pixels, read_pngs, recognise, state, vary
from vma.serve.errors import handle_errors
from vma.serve.guard import Access, BodyLimit, Guard, Workers
from vma.serve.store import Contents, Store, parse_contents

PAGE = Path(__file__).parent / "page"
EXAMPLES = Path(__file__).parent / "examples"  # a folder for each name
VARIED = 8  # images whose ways of variation are kept


class Api:
    """What can be asked. Slow work goes to the workers; the loop that serves everybody never waits for it."""

    def __init__(self, store: Store) -> None:
        self.store, self.workers, self.norms = store, Workers(), Norms()
        self.alone = lru_cache(VARIED)(self.remember_alone)

    async def memory(self) -> messages.State:
        """The memory as it is."""
        return state(self.store.model, self.store.now)

    async def remember(self, message: messages.Remember) -> messages.State:
        """Add images under a name."""
        sent = await self.workers.run(read_pngs, self.store.model, message.images, message.skip)

        def add(contents: Contents) -> Contents:
            return contents.add(self.store.model, sent.ink, message.label)

        return await self.change(f"add {message.label}", add, sent)

    async def keep(self, message: messages.Keep) -> messages.State:
        """Add images of the model's own size, as they are."""
        ink = read_pixels(self.store.model, message.pixels)

        def add(contents: Contents) -> Contents:
            return contents.add(self.store.model, ink, message.label)

        return await self.change(f"keep {message.label}", add)

    async def examples(self) -> messages.State:
        """Add characters of a few scripts."""

        def add(contents: Contents) -> Contents:
            return contents.add(self.store.model, EXAMPLES, None)

        return await self.change("add examples", add)

    async def forget(self, message: messages.Forget) -> messages.State:
        """Take cards out."""
        return await self.change("delete", lambda contents: contents.forget(message.ids))

    async def rename(self, message: messages.Rename) -> messages.State:
        """Give cards another name."""
        return await self.change("rename", lambda contents: contents.rename(message.ids, message.label))

    async def undo(self, message: messages.Undo) -> messages.State:
        """Take back the last change."""
        return state(self.store.model, await self.workers.run(self.store.undo, message.version))

    async def open_file(self, request: Request) -> messages.State:
        """Put the memory of a file in the place of this one."""
        content = await request.body()
        return await self.change("open a file", lambda _: parse_contents(self.store.model, content))

    async def save_file(self) -> Response:
        """The memory as a file."""
        content = await self.workers.run(self.store.now.contents.known().to_bytes)
        name = {"Content-Disposition": 'attachment; filename="memory.safetensors"'}
        return Response(content, media_type="application/octet-stream", headers=name)

    async def imagine(self, message: messages.Imagine) -> messages.Imagined:
        """New examples."""
        return await self.workers.run(imagine, self.store.now.contents, message)

    async def vary(self, message: messages.Vary) -> messages.Varied:
        """One card or image, varied."""
        return await self.workers.run(vary, self.store.now.contents, message, self.alone)

    async def recognise(self, message: messages.Recognise) -> messages.Reading:
        """What the memory makes of an image."""
        return await self.workers.run(recognise, self.store.now.contents, message.image, self.norms)

    async def change(
        self, what: str, make: Callable[[Contents], Contents], sent: Sent | None = None
    ) -> messages.State:
        """Change the memory; the answer is what it is then."""
        return state(self.store.model, await self.workers.run(self.store.change, what, make), sent)

    def remember_alone(self, pixels: str) -> ImageMemory:
        """A memory of one image; it is kept for a while, since what is found out about an item is kept in it."""
        return self.store.model.remember(read_pixels(self.store.model, [pixels]))

    def close(self) -> None:
        """Let go of threads and file."""
        self.workers.close()
        self.norms.close()
        self.store.close()


def create_app(store: Store, access: Access) -> FastAPI:
    """The application for one memory; it lets go of the store when it ends."""
    api = Api(store)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        api.close()

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    handle_errors(app)
    add_routes(app, api)
    app.add_middleware(BodyLimit)
    app.add_middleware(Guard, access=access)
    return app


def add_routes(app: FastAPI, api: Api) -> None:
    """The table of addresses."""
    app.add_api_route("/api/memory", api.memory, methods=["GET"])
    app.add_api_route("/api/memory/file", api.save_file, methods=["GET"], response_model=None)
    app.add_api_route("/api/memory/file", api.open_file, methods=["POST"])
    for name in ("remember", "keep", "forget", "rename", "undo", "examples", "imagine", "vary", "recognise"):
        app.add_api_route(f"/api/{name}", getattr(api, name), methods=["POST"])
    app.add_api_route("/", lambda: FileResponse(PAGE / "index.html"), methods=["GET"], response_model=None)
    mimetypes.add_type("text/javascript", ".js")  # a registry may say otherwise, and a browser then refuses
    app.mount("/page", StaticFiles(directory=PAGE))
