// Epsilon on a logarithmic slider. The stops are round numbers, twenty to each factor of ten, so that every key press
// changes the value and the usual epsilons (1, 2, 4, 5, 8, 10) can be hit exactly.

const MANTISSAS = [1, 1.1, 1.25, 1.4, 1.6, 1.8, 2, 2.2, 2.5, 2.8, 3.2, 3.6, 4, 4.5, 5, 5.6, 6.3, 7, 8, 9];

export function stops(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    for (const mantissa of MANTISSAS) {
      const value = Number((mantissa * 10 ** power).toPrecision(3));
      if (value >= low * 0.999 && value <= high * 1.001) found.push(value);
    }
  }
  return found.length > 1 ? found : [low, high];
}

/** The index of the stop that is nearest on the logarithmic scale. */
export function nearest(values, value) {
  let best = 0;
  for (let index = 1; index < values.length; index += 1) {
    const distance = Math.abs(Math.log(values[index] / value));
    if (distance < Math.abs(Math.log(values[best] / value))) best = index;
  }
  return best;
}

/** A slider and a number field that show one epsilon; the field also takes values beyond the slider. */
export function epsilonField(slider, field, changed) {
  let values = stops(0.1, 100);
  let value = 1;

  const show = (from) => {
    if (from !== slider) slider.value = String(nearest(values, value));
    if (from !== field) field.value = String(value);
    slider.setAttribute("aria-valuetext", `epsilon ${value}`);
    field.removeAttribute("aria-invalid");
  };
  slider.addEventListener("input", () => {
    value = values[Number(slider.value)];
    show(slider);
    changed();
  });
  field.addEventListener("input", () => {
    const given = Number(field.value);
    if (field.value.trim() === "" || !Number.isFinite(given) || given <= 0) {
      field.setAttribute("aria-invalid", "true");
      return;
    }
    value = given;
    show(field);
    changed();
  });
  field.addEventListener("change", () => show(null));

  return {
    get value() {
      return value;
    },
    set(given) {
      value = given;
      show(null);
    },
    range(low, high) {
      values = stops(low, high);
      slider.max = String(values.length - 1);
      show(null);
    },
  };
}
