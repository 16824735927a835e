/** Paints one cell of the heat map: a share as a colour, and marks that need no colour to be seen. */

import { colour, inks } from "./ramp.js";
import { isDark } from "./theme.js";

const NUMBERS_FROM_PX = 30;
const ROUND_FROM_PX = 12;

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} x @param {number} y @param {number} size
 * @param {{share: number, faint: boolean, taints: number, ready: number, unschedulable: number}} cell share is NaN if
 *   the node has none of the resource
 */
export function paint(context, x, y, size, cell) {
  const none = Number.isNaN(cell.share);
  const { fill, ink } = none ? inks(isDark()) : colour(cell.share, isDark());
  const large = size >= NUMBERS_FROM_PX;
  context.clearRect(x, y, size, size);
  context.globalAlpha = cell.faint ? 0.2 : 1;
  context.fillStyle = fill;
  context.beginPath();
  context.roundRect(x, y, size, size, size >= ROUND_FROM_PX ? 3 : 1);
  context.fill();
  context.fillStyle = context.strokeStyle = ink;
  context.lineWidth = Math.max(1, size / 12);
  if (large && !none) number(context, x + size / 2, y + size / 2, cell.share);
  if (cell.taints) corner(context, x + size, y, Math.max(2, size / 4));
  if (!cell.ready) cross(context, large ? x + 3 : x + size / 5, large ? y + size * 0.68 : y + size / 5, size * (large ? 0.25 : 0.6));
  if (cell.unschedulable) line(context, x + size / 5, y + size * 0.86, x + size * 0.8, y + size * 0.86);
  context.globalAlpha = 1;
}

/** A ring that brings out a cell. */
export function ring(context, x, y, size) {
  const { ring: colourOfRing } = inks(isDark());
  const width = size >= 8 ? 2 : 1;
  context.lineWidth = width;
  context.strokeStyle = colourOfRing;
  context.strokeRect(x + width / 2, y + width / 2, size - width, size - width);
}

function number(context, x, y, share) {
  context.font = "11px system-ui, sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(String(Math.round(100 * share)), x, y + 0.5);
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
