/**
 * Where the cells of the heat map are: a block for each zone, cells as large as fit. Many nodes are squares; of a few,
 * each is a card that fills its part of the space. Pure arithmetic.
 */

export const HEAD = 26;
const GAP = 14;
const SMALLEST = 6;
const LARGEST = 84;
const CARD_GAP = 8;
const [CARD_WIDTH, CARD_HEIGHT] = [150, 84];
const [LARGEST_CARD_WIDTH, LARGEST_CARD_HEIGHT] = [640, 340];
const MAX_ACROSS = 6;
const MIN_BLOCK_WIDTH = 170;

/**
 * @typedef {{zone: string, rows: number[], x: number, y: number, across: number, height: number}} Block
 * @typedef {{wide: number, tall: number, gap: number, blocks: Block[], width: number, height: number, blockWidth: number}} Layout
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
      const made = squares(zones, width, columns, size);
      const fits = made.height <= height;
      if (!fits && size > SMALLEST) continue;
      if (!best || made.wide > best.wide || (made.wide === best.wide && made.height < best.height)) best = made;
      break;
    }
  }
  const roomy = best?.wide === LARGEST ? cards(zones, width, height, most) : null;
  return roomy ?? best ?? { wide: LARGEST, tall: LARGEST, gap: 2, blocks: [], width, height: 0, blockWidth: width };
}

function squares(zones, width, columns, size) {
  const gap = size >= 16 ? 2 : 1;
  const across = Math.max(1, Math.floor((widthOfBlock(width, columns) + gap) / (size + gap)));
  return place(zones, width, columns, { wide: size, tall: size, gap, across });
}

/** Cards of the largest area with which everything fits; null if they would be too small. */
function cards(zones, width, height, most) {
  let best = null;
  const longest = Math.max(...zones.map(({ rows }) => rows.length));
  for (let columns = 1; columns <= most; columns += 1) {
    for (let across = 1; across <= longest; across += 1) {
      const gap = CARD_GAP;
      const wide = Math.min(Math.floor((widthOfBlock(width, columns) + gap) / across) - gap, LARGEST_CARD_WIDTH);
      if (wide < CARD_WIDTH) break;
      const { height: heads, lines } = place(zones, width, columns, { wide, tall: -gap, gap, across });
      const tall = Math.min(Math.floor((height - heads) / lines) - gap, wide, LARGEST_CARD_HEIGHT);
      if (tall >= CARD_HEIGHT && (!best || wide * tall > best.wide * best.tall)) best = place(zones, width, columns, { wide, tall, gap, across });
    }
  }
  return best;
}

const widthOfBlock = (width, columns) => Math.floor((width - GAP * (columns - 1)) / columns);

function place(zones, width, columns, { wide, tall, gap, across }) {
  const blockWidth = widthOfBlock(width, columns);
  const blocks = [];
  let [y, lines] = [0, 0];
  for (let first = 0; first < zones.length; first += columns) {
    const row = zones.slice(first, first + columns);
    const most = Math.max(...row.map(({ rows }) => Math.ceil(rows.length / across)));
    row.forEach(({ zone, rows }, column) => blocks.push({ zone, rows, x: column * (blockWidth + GAP), y, across,
      height: HEAD + Math.ceil(rows.length / across) * (tall + gap) }));
    y += HEAD + most * (tall + gap) + GAP;
    lines += most;
  }
  return { wide, tall, gap, blocks, width, height: Math.max(0, y - GAP), blockWidth, lines };
}

/** Top left corner of a cell. @param {Layout} layout @param {Block} block @param {number} place in the block */
export function corner(layout, block, place) {
  const [right, down] = [place % block.across, Math.floor(place / block.across)];
  return [block.x + right * (layout.wide + layout.gap), block.y + HEAD + down * (layout.tall + layout.gap)];
}

/**
 * Which cell is at a point. @param {Layout} layout @param {number} x @param {number} y
 * @returns {{block: number, place: number} | null}
 */
export function hit(layout, x, y) {
  const { wide, tall, gap } = layout;
  for (const [block, { x: left, y: top, across, rows, height }] of layout.blocks.entries()) {
    if (x < left || y < top + HEAD || y >= top + height) continue;
    const column = Math.floor((x - left) / (wide + gap));
    const place = Math.floor((y - top - HEAD) / (tall + gap)) * across + column;
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
