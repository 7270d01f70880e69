import type { ComponentProps } from 'react';

interface ButtonProps extends ComponentProps<'button'> {
  look?: 'primary' | 'plain' | 'danger' | 'link';
  /** It works on it: nothing to press now, and screen readers know why. */
  isBusy?: boolean;
}

export function Button({ look = 'plain', isBusy = false, disabled, children, ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      className={`button ${look}`}
      disabled={disabled || isBusy}
      aria-busy={isBusy}
    >
      {isBusy && <span className="spinner" aria-hidden="true" />}
      {children}
    </button>
  );
}
