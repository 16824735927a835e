/** Where the cells of the heat map are: a block for each zone, cells as large as fit. Pure arithmetic. */

export const HEAD = 26;
const GAP = 14;
const SMALLEST = 6;
const LARGEST = 44;
const MAX_ACROSS = 6;
const MIN_BLOCK_WIDTH = 170;

/**
 * @typedef {{zone: string, rows: number[], x: number, y: number, across: number, height: number}} Block
 * @typedef {{size: number, gap: number, blocks: Block[], width: number, height: number, blockWidth: number}} Layout
 */

/**
 * Find the largest cells with which everything fits; if none do, the smallest, and it scrolls.
 * @param {{zone: string, rows: number[]}[]} zones
 * @param {number} width @param {number} height
 * @returns {Layout}
 */
export function arrange(zones, width, height) {
  let best = null;
  const most = Math.min(MAX_ACROSS, zones.length, Math.max(1, Math.floor(width / MIN_BLOCK_WIDTH)));
  for (let columns = 1; columns <= most; columns += 1) {
    for (let size = LARGEST; size >= SMALLEST; size -= 1) {
      const made = place(zones, width, columns, size);
      const fits = made.height <= height;
      if (!fits && size > SMALLEST) continue;
      if (!best || made.size > best.size || (made.size === best.size && made.height < best.height)) best = made;
      break;
    }
  }
  return best ?? { size: LARGEST, gap: 2, blocks: [], width, height: 0, blockWidth: width };
}

function place(zones, width, columns, size) {
  const gap = size >= 16 ? 2 : 1;
  const blockWidth = Math.floor((width - GAP * (columns - 1)) / columns);
  const across = Math.max(1, Math.floor((blockWidth + gap) / (size + gap)));
  const blocks = [];
  let y = 0;
  for (let first = 0; first < zones.length; first += columns) {
    const row = zones.slice(first, first + columns);
    let tallest = 0;
    row.forEach(({ zone, rows }, column) => {
      const height = HEAD + Math.ceil(rows.length / across) * (size + gap);
      blocks.push({ zone, rows, x: column * (blockWidth + GAP), y, across, height });
      tallest = Math.max(tallest, height);
    });
    y += tallest + GAP;
  }
  return { size, gap, blocks, width, height: Math.max(0, y - GAP), blockWidth };
}

/** Top left corner of a cell. @param {Layout} layout @param {Block} block @param {number} place in the block */
export function corner(layout, block, place) {
  const step = layout.size + layout.gap;
  return [block.x + (place % block.across) * step, block.y + HEAD + Math.floor(place / block.across) * step];
}

/**
 * Which cell is at a point. @param {Layout} layout @param {number} x @param {number} y
 * @returns {{block: number, place: number} | null}
 */
export function hit(layout, x, y) {
  const step = layout.size + layout.gap;
  for (const [block, { x: left, y: top, across, rows, height }] of layout.blocks.entries()) {
    if (x < left || y < top + HEAD || y >= top + height) continue;
    const column = Math.floor((x - left) / step);
    const place = Math.floor((y - top - HEAD) / step) * across + column;
    if (column < across && place < rows.length) return { block, place };
  }
  return null;
}

/**
 * Where an arrow key leads; the same cell at the edges.
 * @param {Layout} layout @param {{block: number, place: number}} from @param {string} key
 */
export function neighbour(layout, { block, place }, key) {
  const { blocks } = layout;
  const { across, rows: { length } } = blocks[block];
  /** Go to a cell of another block, as near as there is one. */
  const to = (other, wanted) => (blocks[other] ? { block: other, place: Math.max(0, Math.min(wanted, blocks[other].rows.length - 1)) } : { block, place });
  const lastLine = (other) => Math.floor(((blocks[other]?.rows.length ?? 1) - 1) / across) * across;
  switch (key) {
    case "ArrowRight": return place + 1 < length ? to(block, place + 1) : to(block + 1, 0);
    case "ArrowLeft": return place > 0 ? to(block, place - 1) : to(block - 1, Infinity);
    case "ArrowDown": return place + across < length ? to(block, place + across) : to(block + 1, place % across);
    case "ArrowUp": return place >= across ? to(block, place - across) : to(block - 1, lastLine(block - 1) + place);
    case "Home": return to(block, 0);
    case "End": return to(block, Infinity);
    case "PageDown": return to(block + 1, 0);
    case "PageUp": return to(block - 1, 0);
    default: return null;
  }
}
