/** Why a text cannot be read, and where. */
export interface ReadFault {
  readonly rule: string;
  readonly message: string;
  readonly suggestion?: string | undefined;
  /** Offsets into the text. */
  readonly start: number;
  readonly end: number;
}

/** Thrown inside the reader, at the first fault of a document. */
export class ConversionFault extends Error {
  readonly fault: ReadFault;
  constructor(fault: ReadFault) {
    super(fault.message);
    this.fault = fault;
  }
}
