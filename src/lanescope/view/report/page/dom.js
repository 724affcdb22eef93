// Elements of the page. Text of the trace gets in by textContent only: it can never become markup.

/**
 * The element with an id, which the page has.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found;
}

/** @param {string} id  @returns {HTMLCanvasElement} */
export const canvasById = (id) => /** @type {HTMLCanvasElement} */ (byId(id));

/**
 * A new element.
 * @param {string} tag
 * @param {Record<string, string | number | boolean | ((event: any) => void)>} properties `class`, attributes, and
 *   functions as `onclick`
 * @param {...(Node | string | null)} inside
 * @returns {HTMLElement}
 */
export function el(tag, properties = {}, ...inside) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (typeof value === 'function') made.addEventListener(key.slice(2), value);
    else if (value !== false) made.setAttribute(key, value === true ? '' : String(value));
  }
  for (const one of inside) if (one !== null) made.append(one);
  return made;
}

/**
 * A button.
 * @param {Record<string, string | number | boolean | ((event: any) => void)>} properties
 * @param {...(Node | string | null)} inside
 */
export const button = (properties, ...inside) => el('button', { type: 'button', ...properties }, ...inside);

/**
 * A list of terms and what they are.
 * @param {[string, Node | string | null][]} pairs those that are null are left out
 */
export function terms(pairs) {
  const list = el('dl');
  for (const [term, value] of pairs) if (value !== null) list.append(el('dt', {}, term), el('dd', {}, value));
  return list;
}
