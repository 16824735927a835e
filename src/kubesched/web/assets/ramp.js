/**
 * Colours for shares from 0 to 1. Lightness alone orders them, so that they read the same with any
 * colour vision and in grey: fuller is darker on a light page and brighter on a dark one.
 */

const LIGHT = ["#e9f2ee", "#c6e3d8", "#98cfc9", "#67b4bf", "#4093b3", "#3370a5", "#354c8c", "#312b66", "#1d1238"];
const DARK = ["#1c2a44", "#204469", "#1d6080", "#1b7d88", "#2e9b82", "#61b76d", "#a1ce58", "#dfe054", "#fff3a0"];
const STEPS = 101;

const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

function table(stops) {
  return Array.from({ length: STEPS }, (_, step) => {
    const position = (step / (STEPS - 1)) * (stops.length - 1);
    const low = Math.min(Math.floor(position), stops.length - 2);
    const [from, to] = [channels(stops[low]), channels(stops[low + 1])];
    const [r, g, b] = from.map((value, at) => Math.round(value + (to[at] - value) * (position - low)));
    // Relative luminance decides whether words and marks on the colour are black or white: at this limit, both have a
    // contrast of 4.58, so that one of them always has 4.5.
    const linear = [r, g, b].map((each) => ((each / 255 + 0.055) / 1.055) ** 2.4);
    const luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
    return { fill: `rgb(${r} ${g} ${b})`, ink: luminance > 0.179 ? "#000000" : "#ffffff" };
  });
}

const TABLES = { light: table(LIGHT), dark: table(DARK) };

const INKS = {
  light: { fill: "#eef0f4", ink: "#56627a", ring: "#d6186b" },
  dark: { fill: "#1a212d", ink: "#9dabc0", ring: "#ff8ac0" },
};

/** Colours of other cells and of rings. @param {boolean} dark */
export const inks = (dark) => INKS[dark ? "dark" : "light"];

/**
 * @param {number} share of a resource @param {boolean} dark
 * @returns {{fill: string, ink: string}}
 */
export function colour(share, dark) {
  const step = Math.max(0, Math.min(STEPS - 1, Math.round(share * (STEPS - 1))));
  return TABLES[dark ? "dark" : "light"][step];
}
