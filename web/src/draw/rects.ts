// A layer of very many rectangles in data units: WebGL2 with instances, or canvas 2D where there is none.

/** Rectangles as x0, y0, x1, y1 each, relative to an origin that the owner keeps; a colour each, 0xRRGGBB. */
export interface Rects {
  corners: Float32Array;
  colours: Uint32Array;
  count: number;
  /** Where rows begin, ascending; in a row x0 and x1 ascend. What comes before the first row is in no order. */
  rows: number[];
}
/** Which data units are at the layer's edges; y0 at the bottom. */
export interface Window2d {
  x0: number;
  x1: number;
  y0: number;
  y1: number;
}
export interface RectLayer {
  readonly kind: "webgl2" | "canvas2d";
  set(rects: Rects): void;
  draw(window: Window2d): void;
}

/** `wanted`: "webgl" also where software stands in for a GPU, "canvas" nowhere. A software WebGL is slower than
 *  pixels that are filled here, which copies nothing between processes. */
export function rect_layer(canvas: HTMLCanvasElement, wanted: string | null = null): RectLayer {
  if (wanted === "webgl" || (wanted !== "canvas" && has_gpu())) {
    const gl = canvas.getContext("webgl2", { antialias: false, alpha: true, preserveDrawingBuffer: true });
    const layer = gl && webgl_layer(gl, canvas);
    if (layer) return layer;
  }
  return canvas_layer(canvas);
}

let gpu: boolean | null = null;
/** Tested on a canvas of its own: a canvas that has given WebGL cannot give canvas 2D. */
function has_gpu(): boolean {
  if (gpu !== null) return gpu;
  const gl = document.createElement("canvas").getContext("webgl2", { failIfMajorPerformanceCaveat: true });
  const names = gl?.getExtension("WEBGL_debug_renderer_info");
  const name = gl ? String(gl.getParameter(names ? names.UNMASKED_RENDERER_WEBGL : gl.RENDERER)) : "";
  gl?.getExtension("WEBGL_lose_context")?.loseContext();
  return (gpu = gl !== null && !/swiftshader|llvmpipe|softpipe|software|basic render/i.test(name));
}

// A rectangle that is thinner than a pixel is drawn one pixel wide, so that nothing vanishes sideways; its height is
// as it is: heights add up.
const VERTEX = `#version 300 es
in vec2 corner;
in vec4 box;
in vec4 colour;
uniform vec4 window;
uniform vec2 pixel;
flat out vec4 shade;
void main() {
  vec2 low = (box.xy - window.xy) * window.zw;
  vec2 high = (box.zw - window.xy) * window.zw;
  high.x = max(high.x, low.x + pixel.x);
  vec2 at = mix(low, high, corner);
  gl_Position = vec4(at * 2.0 - 1.0, 0.0, 1.0);
  shade = colour;
}`;
const FRAGMENT = `#version 300 es
precision mediump float;
flat in vec4 shade;
out vec4 result;
void main() { result = vec4(shade.rgb, 1.0); }`;

function webgl_layer(gl: WebGL2RenderingContext, canvas: HTMLCanvasElement): RectLayer | null {
  const program = gl.createProgram();
  for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]] as const) {
    const shader = gl.createShader(kind);
    if (!shader || !program) return null;
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  ["corner", "box", "colour"].forEach((name, index) => gl.bindAttribLocation(program, index, name));
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS)) return null;
  const at_window = gl.getUniformLocation(program, "window");
  const at_pixel = gl.getUniformLocation(program, "pixel");
  const array = gl.createVertexArray();
  const [corners, boxes, colours] = [gl.createBuffer(), gl.createBuffer(), gl.createBuffer()];
  gl.bindVertexArray(array);
  gl.bindBuffer(gl.ARRAY_BUFFER, corners);
  gl.bufferData(gl.ARRAY_BUFFER, new Float32Array([0, 0, 1, 0, 0, 1, 1, 1]), gl.STATIC_DRAW);
  gl.enableVertexAttribArray(0);
  gl.vertexAttribPointer(0, 2, gl.FLOAT, false, 0, 0);
  gl.bindBuffer(gl.ARRAY_BUFFER, boxes);
  gl.enableVertexAttribArray(1);
  gl.vertexAttribPointer(1, 4, gl.FLOAT, false, 0, 0);
  gl.vertexAttribDivisor(1, 1);
  gl.bindBuffer(gl.ARRAY_BUFFER, colours);
  gl.enableVertexAttribArray(2);
  gl.vertexAttribPointer(2, 4, gl.UNSIGNED_BYTE, true, 0, 0);
  gl.vertexAttribDivisor(2, 1);
  let count = 0;
  return {
    kind: "webgl2",
    set(rects) {
      count = rects.count;
      gl.bindBuffer(gl.ARRAY_BUFFER, boxes);
      gl.bufferData(gl.ARRAY_BUFFER, rects.corners.subarray(0, 4 * count), gl.DYNAMIC_DRAW);
      const shades = new Uint8Array(4 * count);
      for (let i = 0; i < count; ++i) {
        const colour = rects.colours[i];
        shades[4 * i] = colour >> 16;
        shades[4 * i + 1] = colour >> 8;
        shades[4 * i + 2] = colour;
      }
      gl.bindBuffer(gl.ARRAY_BUFFER, colours);
      gl.bufferData(gl.ARRAY_BUFFER, shades, gl.DYNAMIC_DRAW);
    },
    draw(window) {
      gl.viewport(0, 0, canvas.width, canvas.height);
      gl.clearColor(0, 0, 0, 0);
      gl.clear(gl.COLOR_BUFFER_BIT);
      if (count === 0) return;
      gl.useProgram(program);
      gl.bindVertexArray(array);
      gl.uniform4f(at_window, window.x0, window.y0, 1 / (window.x1 - window.x0), 1 / (window.y1 - window.y0));
      gl.uniform2f(at_pixel, 1 / canvas.width, 1 / canvas.height);
      gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, count);
    },
  };
}

/** Fills pixels directly: one canvas call per rectangle would take most of a frame. */
function canvas_layer(canvas: HTMLCanvasElement): RectLayer {
  let held: Rects = new RectList(0);
  let image: ImageData | null = null;
  return {
    kind: "canvas2d",
    set(rects) {
      held = rects;
    },
    draw(window) {
      const context = canvas.getContext("2d");
      if (!context) return;
      const { width, height } = canvas;
      if (image?.width !== width || image.height !== height) image = context.createImageData(width, height);
      const pixels = new Uint32Array(image.data.buffer);
      pixels.fill(0);
      fill_rects(pixels, width, height, held, window);
      context.putImageData(image, 0, 0);
    },
  };
}

/** Rectangles into pixels of 0xAABBGGRR, the later over the earlier; thinner than a pixel sideways they are one wide.
 *  Integers throughout (`| 0`): a third of the time, and this is most of a frame. */
export function fill_rects(pixels: Uint32Array, width: number, height: number, rects: Rects, window: Window2d): void {
  const { corners, rows, count } = rects;
  const pixel = (window.x1 - window.x0) / width;
  fill_some(pixels, width, height, rects, window, 0, rows[0] ?? count);
  for (let row = 0; row < rows.length; ++row) {
    const end = rows[row + 1] ?? count;
    const first = first_where(rows[row], end, (i) => corners[4 * i + 2] > window.x0 - pixel);
    fill_some(pixels, width, height, rects, window, first, first_where(first, end, (i) => corners[4 * i] > window.x1));
  }
}
/** The first index of [low, high) for which what stays true is true, else `high`. */
function first_where(low: number, high: number, is_true: (i: number) => boolean): number {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (is_true(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
function fill_some(pixels: Uint32Array, width: number, height: number, rects: Rects, window: Window2d, first: number, end: number): void {
  const { corners, colours } = rects;
  const scale_x = width / (window.x1 - window.x0);
  const scale_y = height / (window.y1 - window.y0);
  for (let i = first, at = 4 * first; i < end; ++i, at += 4) {
    // Whole pixels: two edges that share a pixel would leave a pale seam.
    const left = Math.round((corners[at] - window.x0) * scale_x);
    const right = Math.max(left + 1, Math.round((corners[at + 2] - window.x0) * scale_x));
    if (left >= width || right <= 0) continue;
    const x0 = Math.max(0, left) | 0;
    const x1 = Math.min(width, right) | 0;
    const y0 = Math.min(height, Math.round(height - (corners[at + 1] - window.y0) * scale_y)) | 0;
    const y1 = Math.max(0, Math.round(height - (corners[at + 3] - window.y0) * scale_y)) | 0;
    if (y0 <= y1) continue;
    const colour = colours[i] | 0;
    const shade = -0x1000000 | ((colour & 255) << 16) | (colour & 0xff00) | (colour >> 16);
    const below = (y0 * width) | 0;
    if (x1 - x0 === 1) for (let pixel = (y1 * width + x0) | 0; pixel < below; pixel = (pixel + width) | 0) pixels[pixel] = shade;
    else if (x1 - x0 > 16) for (let row = y1 * width; row < below; row += width) pixels.fill(shade, row + x0, row + x1);
    else
      for (let row = (y1 * width) | 0; row < below; row = (row + width) | 0) for (let x = (row + x0) | 0, stop = (row + x1) | 0; x < stop; ++x) pixels[x] = shade;
  }
}

/** Grows as rectangles are added; `expected` of them need no copy. */
export class RectList implements Rects {
  corners: Float32Array;
  colours: Uint32Array;
  count = 0;
  rows: number[] = [];
  constructor(expected = 1024) {
    this.corners = new Float32Array(4 * Math.max(1, expected));
    this.colours = new Uint32Array(Math.max(1, expected));
  }
  begin_row(): void {
    this.rows.push(this.count);
  }
  add(x0: number, y0: number, x1: number, y1: number, colour: number): void {
    if (this.count === this.colours.length) {
      const corners = new Float32Array(8 * this.count);
      corners.set(this.corners);
      this.corners = corners;
      const colours = new Uint32Array(2 * this.count);
      colours.set(this.colours);
      this.colours = colours;
    }
    const at = 4 * this.count;
    this.corners[at] = x0;
    this.corners[at + 1] = y0;
    this.corners[at + 2] = x1;
    this.corners[at + 3] = y1;
    this.colours[this.count++] = colour;
  }
}
