/** One property decorator made of several. */
export function composeDecorators(...decorators: PropertyDecorator[]): PropertyDecorator {
  return (target, property) => {
    for (const decorate of decorators) {
      decorate(target, property);
    }
  };
}
