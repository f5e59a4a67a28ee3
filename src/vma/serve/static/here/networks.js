/** The model's ONNX graphs, run by ONNX Runtime Web on one thread; `docs/export.md` says what each of them is. */

import { env, InferenceSession, Tensor } from "../runtime/ort.wasm.bundle.min.mjs";
import { around, divergence, logNormal, mostCentral, product, total } from "./numbers.js";

const AT_ONCE = 64; // rows of z
const COLDEST = 1e-3, COOL = 0.8; // temperatures: below the first a drawing is typical; the second is that of its tries
const here = (path) => new URL(path, import.meta.url).href;

async function read(path, how) {
  const response = await fetch(here(path));
  if (!response.ok) throw new Error(`The file ${path} is missing: copy the whole folder.`);
  return response[how]();
}

export class Networks {
  constructor(manifest, page, sessions) {
    Object.assign(this, { manifest, page, sessions });
    this.size = [manifest.config.height, manifest.config.width];
    this.pixels = this.size[0] * this.size[1];
    this.latent = manifest.config.latent;
    this.inOrder = manifest.likelihood === "reading-order"; // pixels know those before them
    this.items = new WeakMap(); // what is known of an image as an item, by its ink
    this.tries = this.each(Float32Array.from(page.tries)); // the uniform numbers of typical drawings
  }

  static async open() {
    env.wasm.numThreads = 1;
    env.wasm.wasmPaths = { wasm: here("../runtime/ort-wasm-simd-threaded.wasm") };
    const [manifest, page] = await Promise.all(["manifest", "page"].map((name) => read(`../model/${name}.json`, "json")));
    const graphs = Object.entries(manifest.graphs);
    const files = await Promise.all(graphs.map(([, { file }]) => read(`../model/${file}`, "arrayBuffer")));
    const sessions = {};
    for (const [i, [name]] of graphs.entries()) sessions[name] = await InferenceSession.create(files[i]);
    return new Networks(manifest, page, sessions);
  }

  run(name, inputs) {
    const asked = Object.fromEntries(Object.keys(this.manifest.graphs[name].inputs).map((each) => [each, inputs[each]]));
    return this.sessions[name].run(asked);
  }

  images(inks) {
    const data = new Float32Array(inks.length * this.pixels);
    inks.forEach((ink, i) => data.set(ink, i * this.pixels));
    return new Tensor("float32", data, [inks.length, ...this.size]);
  }

  /** The key of each image. */
  async keys(inks) {
    const found = [];
    for (let i = 0; i < inks.length; i += AT_ONCE) {
      const { keys } = await this.run("keys", { m: this.images(inks.slice(i, i + AT_ONCE)) });
      const [count, width] = keys.dims;
      for (let row = 0; row < count; row += 1) found.push(keys.data.slice(row * width, (row + 1) * width));
    }
    return found;
  }

  /** The query of an image, and what its likelihood needs. */
  async target(ink) {
    const x = this.images([ink]), { queries } = await this.run("queries", { x });
    return { ink, x, query: queries.data, parts: await this.run("targets", { x }) };
  }

  /** p(z|m), and the decoder's halves, of an item; computed once. */
  item(ink) {
    if (!this.items.has(ink)) this.items.set(ink, this.run("items", { m: this.images([ink]) }).then(
      ({ mean, deviation, ...halves }) => ({ mean: mean.data, deviation: deviation.data, halves })));
    return this.items.get(ink);
  }

  async encoded(target, ink) {
    const { mean, deviation } = await this.run("encoder", { x: target.x, m: this.images([ink]) });
    return { mean: mean.data, deviation: deviation.data };
  }

  /** Features of rows of z, all from one item. */
  async decoded(item, z) {
    const rows = z.length / this.latent;
    const halves = Object.fromEntries(Object.entries(item.halves).map(([name, half]) => [name, tiled(half, rows)]));
    return (await this.run("decoder", { ...halves, z: new Tensor("float32", z, [rows, this.latent]) })).features;
  }

  /**
   * log p(z|m) p(x|m,z) / q(z|m,x) for each row of noise, with z = μ + σ · noise of q(z|m,x), and KL(q(z|m,x) ‖ p(z|m)).
   */
  async weights(target, ink, noise) {
    const [q, item] = await Promise.all([this.encoded(target, ink), this.item(ink)]);
    const z = around(q, noise), count = noise.length / this.latent, found = [];
    for (let i = 0; i < count; i += AT_ONCE) {
      const features = await this.decoded(item, z.slice(i * this.latent, (i + AT_ONCE) * this.latent));
      const parts = Object.fromEntries(Object.entries(target.parts).map(([name, each]) => [name, tiled(each, features.dims[0])]));
      found.push(...(await this.run("likelihood", { ...parts, features })).log_p.data);
    }
    return { kl: divergence(q, item), logs: found.map((value, row) => value + logNormal(z, row, item) - logNormal(z, row, q)) };
  }

  /** Images and means of features at uniform numbers. */
  async drawn(features, uniforms, temperature) {
    if (temperature < COLDEST && this.inOrder) return this.typicalOf(features);
    const dims = [features.dims[0], ...this.size];
    const found = await this.run("draw", {
      features,
      uniforms: new Tensor("float32", uniforms, dims),
      temperature: new Tensor("float32", Float32Array.of(temperature), []),
    });
    return { images: this.each(found.images.data), means: this.each(found.means.data) };
  }

  /** A drawing that stands for all of p(x|m,z), and the mean of each pixel, for z = μ + σ · noise of p(z|m). */
  async typical(item, noise, spread = item) {
    const z = around(spread, noise), width = this.latent * Math.max(1, Math.floor(AT_ONCE / this.tries.length));
    const found = { images: [], means: [] };
    for (let i = 0; i < z.length; i += width) {
      const drawn = await this.typicalOf(await this.decoded(item, z.slice(i, i + width)));
      for (const name of ["images", "means"]) found[name].push(...drawn[name]);
    }
    return found;
  }

  /** Of the drawings at `tries`, the one most like all of them, and the mean of their means; for each row. */
  async typicalOf(features) {
    const count = features.dims[0], { tries, pixels } = this, numbers = new Float32Array(tries.length * count * pixels);
    for (let i = 0; i < tries.length * count; i += 1) numbers.set(tries[Math.floor(i / count)], i * pixels);
    const { images, means } = await this.drawn(tiled(features, tries.length), numbers, COOL);
    const of = (all) => Array.from({ length: count }, (_, row) => tries.map((_, i) => all[i * count + row]));
    return {
      images: of(images).map(mostCentral),
      means: of(means).map((some) => total(some).map((value) => value / some.length)),
    };
  }

  each(images) {
    return Array.from({ length: images.length / this.pixels }, (_, i) => images.slice(i * this.pixels, (i + 1) * this.pixels));
  }

  /** What a figure shows: means where pixels are independent, and images where they know each other. */
  shown(drawn) {
    return this.inOrder ? drawn.images : drawn.means;
  }

  /** log p(a) up to a constant, of each key. */
  priorScores(keys) {
    const query = this.manifest.prior_query;
    return keys.map((key) => (query === null ? 0 : product(key, query)));
  }
}

function tiled({ type, data, dims }, count) {
  const all = new data.constructor(count * data.length);
  for (let i = 0; i < count; i += 1) all.set(data, i * data.length);
  return new Tensor(type, all, [count * dims[0], ...dims.slice(1)]);
}
