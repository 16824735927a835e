/** Paints one cell of the heat map: a share as a colour, and marks that need no colour to be seen. */

import { colour, inks } from "./ramp.js";
import { isDark } from "./theme.js";

const NUMBERS_FROM_PX = 30;
const ROUND_FROM_PX = 12;
/** Wider cells are cards: they have the name of the node and more than one number. */
const CARD_FROM_PX = 120;
const LINE_PX = 19;
const LARGEST_MARK_PX = 84;
const EDGE_PX = 12;
const FONT = "system-ui, sans-serif";

/** Whether a cell of this width has room for words. @param {number} wide */
export const isCard = (wide) => wide >= CARD_FROM_PX;

/**
 * @param {CanvasRenderingContext2D} context
 * @param {{x: number, y: number, wide: number, tall: number}} box
 * @param {{share: number, faint: boolean, taints: number, ready: number, unschedulable: number, name?: string,
 *   lines?: {title: string, text: string, share: number}[]}} cell share is NaN if the node has none of the resource; name and
 *   lines are for cards
 */
export function paint(context, { x, y, wide, tall }, cell) {
  const none = Number.isNaN(cell.share);
  const { fill, ink } = none ? inks(isDark()) : colour(cell.share, isDark());
  const large = tall >= NUMBERS_FROM_PX;
  const side = Math.min(tall, LARGEST_MARK_PX);
  context.clearRect(x, y, wide, tall);
  context.globalAlpha = cell.faint ? (isCard(wide) ? 0.4 : 0.2) : 1;
  context.fillStyle = fill;
  context.beginPath();
  context.roundRect(x, y, wide, tall, isCard(wide) ? 8 : tall >= ROUND_FROM_PX ? 3 : 1);
  context.fill();
  context.save();
  context.clip();
  context.fillStyle = context.strokeStyle = ink;
  context.lineWidth = Math.max(1, side / 12);
  if (isCard(wide)) card(context, { x, y, wide, tall }, cell, none);
  else if (large && !none) number(context, x + wide / 2, y + tall / 2, cell.share);
  if (cell.taints) corner(context, x + wide, y, Math.max(2, side / 4));
  if (!cell.ready) cross(context, large ? x + 3 : x + side / 5, large ? y + tall - side * 0.32 : y + side / 5, side * (large ? 0.25 : 0.6));
  if (cell.unschedulable) line(context, x + wide / 5, y + tall - side * 0.14, x + wide * 0.8, y + tall - side * 0.14);
  context.restore();
  context.globalAlpha = 1;
}

/** The words of a card: the node's name, the share, and as many resources as there is room for. */
function card(context, { x, y, wide, tall }, { name, share, lines = [] }, none) {
  const [left, right] = [x + EDGE_PX, x + wide - EDGE_PX];
  const room = right - left;
  write(context, shortened(context, name, room - EDGE_PX, `600 13px ${FONT}`), left, y + 16);
  if (!none) write(context, `${Math.round(100 * share)}%`, left, y + 42, `600 22px ${FONT}`);
  const shown = lines.slice(0, Math.max(0, Math.floor((tall - 66) / LINE_PX)));
  shown.forEach(({ title, text, share: of }, at) => {
    const middle = y + tall - (shown.length - at) * LINE_PX + 2;
    write(context, shortened(context, title, room * 0.55, `12px ${FONT}`), left, middle);
    write(context, text, right, middle, `12px ${FONT}`, "right");
    context.globalAlpha *= 0.25;
    context.fillRect(left, middle + 8, room, 2);
    context.globalAlpha *= 4;
    context.fillRect(left, middle + 8, room * Math.min(1, of), 2);
  });
}

/** A text cut to a width. */
function shortened(context, text, room, font) {
  context.font = font;
  if (context.measureText(text).width <= room) return text;
  let end = text.length;
  while (end > 1 && context.measureText(`${text.slice(0, end)}…`).width > room) end -= 1;
  return `${text.slice(0, end)}…`;
}

function write(context, text, x, y, font = context.font, align = "left") {
  context.font = font;
  context.textAlign = align;
  context.textBaseline = "middle";
  context.fillText(text, x, y);
}

/** A ring that brings out a cell. */
export function ring(context, { x, y, wide, tall }) {
  const { ring: colourOfRing } = inks(isDark());
  const width = tall >= 8 ? 2 : 1;
  context.lineWidth = width;
  context.strokeStyle = colourOfRing;
  context.beginPath();
  context.roundRect(x + width / 2, y + width / 2, wide - width, tall - width, isCard(wide) ? 8 : 0);
  context.stroke();
}

function number(context, x, y, share) {
  write(context, String(Math.round(100 * share)), x, y + 0.5, `11px ${FONT}`, "center");
}

function corner(context, x, y, side) {
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(x - side, y);
  context.lineTo(x, y + side);
  context.fill();
}

function cross(context, x, y, side) {
  line(context, x, y, x + side, y + side);
  line(context, x + side, y, x, y + side);
}

function line(context, x1, y1, x2, y2) {
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x2, y2);
  context.stroke();
}
