// Places the steps of a topology in layers, left to right, with few crossings and short edges.
//
// An edge that skips layers gets a bend in each of them, so that it runs between the steps and not behind them.

const SWEEPS = 12;

export function layout(nodes, { width, height, gapX, gapY }) {
  const layerOf = layersByLongestPath(nodes);
  const vertices = new Map(nodes.map((node) => [node.name, vertex(node.name, layerOf.get(node.name), height)]));
  const edges = [];
  for (const node of nodes) {
    for (const upstream of node.upstreams) edges.push(connect(vertices, upstream, node.name));
  }
  const layers = [];
  for (const v of vertices.values()) (layers[v.layer] ||= []).push(v);
  untangle(layers);
  settle(layers, gapY);

  const low = Math.min(...[...vertices.values()].map((v) => v.y - v.height / 2));
  const high = Math.max(...[...vertices.values()].map((v) => v.y + v.height / 2));
  const left = (v) => v.layer * (width + gapX);
  const places = new Map(nodes.map(({ name }) => [name, { x: left(vertices.get(name)), y: vertices.get(name).y - low - height / 2 }]));
  return {
    width: layers.length * (width + gapX) - gapX,
    height: high - low,
    places,
    edges: edges.map(({ from, to, via }) => ({ from, to, path: curve(via, left, width, low) })),
  };
}

function vertex(name, layer, height) {
  return { name, layer, height, before: [], after: [], y: 0 };
}

// Nodes come after their upstreams, so one pass is enough.
function layersByLongestPath(nodes) {
  const layers = new Map();
  for (const node of nodes) layers.set(node.name, Math.max(-1, ...node.upstreams.map((name) => layers.get(name))) + 1);
  return layers;
}

function connect(vertices, from, to) {
  const [first, last] = [vertices.get(from), vertices.get(to)];
  const via = [first];
  for (let layer = first.layer + 1; layer < last.layer; layer += 1) {
    const bend = vertex(`${from}→${to}@${layer}`, layer, 10);
    vertices.set(bend.name, bend);
    via.push(bend);
  }
  via.push(last);
  for (let i = 1; i < via.length; i += 1) {
    via[i - 1].after.push(via[i]);
    via[i].before.push(via[i - 1]);
  }
  return { from, to, via };
}

// Sorts each layer by the mean place of its neighbours, forth and back.
function untangle(layers) {
  const number = (layer) => layer.forEach((v, index) => (v.order = index));
  layers.forEach(number);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const forth = sweep % 2 === 0;
    for (const layer of forth ? layers : [...layers].reverse()) {
      for (const v of layer) v.wish = mean((forth ? v.before : v.after).map((other) => other.order), v.order);
      layer.sort((a, b) => a.wish - b.wish || a.order - b.order);
      number(layer);
    }
  }
}

// Moves each step towards its neighbours, as far as the steps above and below let it.
function settle(layers, gap) {
  for (const layer of layers) spread(layer, layer.map((_, index) => index * 80), gap);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const forth = sweep % 2 === 0;
    for (const layer of forth ? layers : [...layers].reverse()) {
      const wishes = layer.map((v) => mean((forth ? v.before : v.after).map((other) => other.y), v.y));
      spread(layer, wishes, gap);
    }
  }
}

// The places nearest to the wishes (least squares) that keep the order and the gaps: pool adjacent violators.
function spread(layer, wishes, gap) {
  const offsets = [];
  layer.forEach((v, i) => offsets.push(i ? offsets[i - 1] + (layer[i - 1].height + v.height) / 2 + gap : 0));
  const pools = [];
  wishes.forEach((wish, i) => {
    pools.push({ sum: wish - offsets[i], size: 1 });
    while (pools.length > 1 && pools.at(-2).sum / pools.at(-2).size > pools.at(-1).sum / pools.at(-1).size) {
      const last = pools.pop();
      pools.at(-1).sum += last.sum;
      pools.at(-1).size += last.size;
    }
  });
  const flat = pools.flatMap((pool) => Array(pool.size).fill(pool.sum / pool.size));
  layer.forEach((v, i) => (v.y = flat[i] + offsets[i]));
}

function mean(values, otherwise) {
  return values.length ? values.reduce((a, b) => a + b, 0) / values.length : otherwise;
}

function curve(via, left, width, low) {
  const y = (v) => (v.y - low).toFixed(1);
  let path = `M${left(via[0]) + width} ${y(via[0])}`;
  for (let i = 1; i < via.length; i += 1) {
    const [start, end] = [left(via[i - 1]) + width, left(via[i])];
    const middle = (start + end) / 2;
    path += `C${middle} ${y(via[i - 1])} ${middle} ${y(via[i])} ${end} ${y(via[i])}`;
    if (i < via.length - 1) path += `H${end + width}`;
  }
  return path;
}
