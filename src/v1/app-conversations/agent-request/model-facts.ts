/** What a model costs, USD per million tokens. */
export interface ModelPrice {
  input: number;
  output: number;
}

/** What is known of a model beside its name. */
export interface ModelFacts {
  /** Null: nobody knows. */
  price: ModelPrice | null;
  /** Tokens; null: nobody knows. */
  contextWindow: number | null;
}
