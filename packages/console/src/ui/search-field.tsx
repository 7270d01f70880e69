import { type KeyboardEvent, type ReactNode, useId, useState } from 'react';
import { Field, type Labelled } from './form.js';

export type Choice = { name: string; note?: string };

interface SearchFieldProps<T extends Choice> extends Labelled {
  placeholder: string;
  text: string;
  onText: (text: string) => void;
  /** What fits the text, the best first. */
  choices: readonly T[];
  /** What there is to say besides: that it is searched, or where it could not be. */
  status: ReactNode;
}

/**
 * A text with suggestions; one that is not among them may be typed, too. Not the library's: while its list is open,
 * fields around it are hidden from screen readers and can still be reached, which axe refuses.
 */
export function SearchField<T extends Choice>(props: SearchFieldProps<T>) {
  const { label, hint, placeholder, text, onText, choices, status } = props;
  const listId = useId();
  const [isOpen, setOpen] = useState(false);
  const [active, setActive] = useState(-1);
  const choose = (name: string) => {
    onText(name);
    setOpen(false);
  };
  const show = (index: number) => {
    setActive(index);
    setOpen(true);
  };
  const optionId = (index: number): string => `${listId}-${index}`;
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const chosen = isOpen && event.key === 'Enter' ? choices[active] : undefined;
    if (step !== undefined && choices.length > 0) {
      const next = (Math.max(active, step > 0 ? -1 : 0) + step + choices.length) % choices.length;
      show(next);
      document.getElementById(optionId(next))?.scrollIntoView({ block: 'nearest' });
    } else if (event.key === 'Escape') {
      setOpen(false);
    } else if (chosen !== undefined) {
      choose(chosen.name);
    } else {
      return;
    }
    event.preventDefault();
  };
  return (
    <div className="search" onBlur={() => setOpen(false)}>
      <Field
        label={label}
        hint={hint}
        draw={(of) => (
          <input
            {...of}
            role="combobox"
            aria-autocomplete="list"
            aria-expanded={isOpen}
            aria-controls={listId}
            aria-activedescendant={isOpen && active in choices ? optionId(active) : undefined}
            autoComplete="off"
            placeholder={placeholder}
            value={text}
            onChange={({ target }) => {
              onText(target.value);
              show(-1);
            }}
            onClick={() => show(-1)}
            onKeyDown={onKeyDown}
          />
        )}
      />
      {/* Pressed, it would take the focus from the field, and close. */}
      <div className="choices" hidden={!isOpen} onMouseDown={(event) => event.preventDefault()}>
        <p className="hint" role="status">
          {status || (choices.length === 0 && 'Nothing fits; it can be typed as a whole.')}
        </p>
        <ul id={listId} role="listbox" aria-label="Suggestions">
          {choices.map(({ name, note }, index) => (
            <li
              key={`${name} ${note}`}
              id={optionId(index)}
              role="option"
              aria-selected={index === active}
              className="choice"
              onClick={() => choose(name)}>
              {name} <span className="hint">{note}</span>
            </li>
          ))}
        </ul>
      </div>
    </div>
  );
}
